/* Leaks that are not ours. libfyaml's and those of programs are known by the one frame of a library at a malloc; what jq 1.6's
 * compiler loses (the array of a constant index: [1][[2]]) is not counted while it compiles. The unit tests run without this. */
#include <sanitizer/lsan_interface.h>

int __real_jq_compile(void *jq, const char *text) __attribute__((weak)); /* not every target has libjq */
int __wrap_jq_compile(void *jq, const char *text);
int __wrap_jq_compile(void *jq, const char *text)
{
	__lsan_disable();
	int fine = __real_jq_compile(jq, text);
	__lsan_enable();
	return fine;
}

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
