/* Leaks that are not ours, by the one frame of a library that is known at a malloc. The unit tests run without this. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return
		/* libfyaml 0.7.12 loses a few KB at each single-quoted scalar with five and more doubled quotes
		 * ('''''''''''' is a document); nothing that its caller could free */
		"leak:libfyaml.so\n"
#ifdef FUZZ_KEEPS_PROGRAMS
		/* programs that live as long as the process: libjq points at its stack's end only, which LeakSanitizer
		 * takes for a leak */
		"leak:jv_mem_realloc\n"
#endif
		;
}
