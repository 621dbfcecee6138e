/* Names, classes and texts of the error codes in err.def. */
#include "common/base/err.h"
#include <stddef.h>

static const struct {
	int err;
	const char *name;
	enum sl_err_class class;
	const char *text;
} table[] = {
#define SL_ERR(name, class, text) {SL_##name, #name, SL_CLASS_##class, text},
#include "common/base/err.def"
#undef SL_ERR
};

#define COUNT (sizeof(table) / sizeof(table[0]))

static size_t find(int err)
{
	for (size_t i = 0; i < COUNT; i++)
		if (table[i].err == err)
			return i;
	return COUNT;
}

const char *sl_err_name(int err)
{
	size_t i = find(err);
	if (err == SL_OK)
		return "OK";
	return i < COUNT ? table[i].name : "E?";
}

const char *sl_err_text(int err)
{
	size_t i = find(err);
	if (err == SL_OK)
		return "fine";
	return i < COUNT ? table[i].text : "unknown error";
}

enum sl_err_class sl_err_class(int err)
{
	size_t i = find(err);
	if (err == SL_OK)
		return SL_CLASS_OK;
	return i < COUNT ? table[i].class : SL_CLASS_FATAL;
}
