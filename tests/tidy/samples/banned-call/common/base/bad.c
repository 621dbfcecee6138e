/* Copies without a bound. */
#include <string.h>

void sl_bad(char *to, const char *from)
{
	strcpy(to, from); /* strcat in a comment is fine */
}
