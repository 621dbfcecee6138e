/* Mistakes on purpose: each must make its ctest entry fail, else a green run of the unit tests would prove nothing. */
#include <criterion/criterion.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Volatile, so that no compiler can see through the mistakes. */
static void *volatile lost;
static volatile int number = INT_MAX;

Test(proof, leak)
{
	lost = malloc(100);
	cr_assert(lost != NULL);
	lost = NULL;
}

Test(proof, overflow)
{
	char *volatile text = malloc(4);
	memset(text, 'x', 4);
	cr_expect(text[number - INT_MAX + 4] != 'x' || number);
	free(text);
}

Test(proof, undefined)
{
	cr_expect(number + 1 != 0);
}
