/* Compiles without a warning; the analyzer sees the use after the end of its life. */
#include <stdlib.h>

int sl_bad(int a);

int sl_bad(int a)
{
	int *p = malloc(sizeof(*p));
	if (!p)
		return 0;
	*p = a;
	if (a > 3)
		free(p);
	a = *p;
	free(p);
	return a;
}
