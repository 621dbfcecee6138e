/* State that is lost when memory runs out. */
#include <stdlib.h>

void sl_bad(char **ret)
{
	char *text = malloc(10);
	*ret = text;
}
