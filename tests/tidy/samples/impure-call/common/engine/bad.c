/* A step that looks at the clock. */
#include <time.h>

long sl_bad(void)
{
	return (long)time(NULL);
}
