/* Clang warns, gcc does not. */
int sl_bad(int a);

int sl_bad(int a)
{
	a = a;
	return a;
}
