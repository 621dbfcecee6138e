/* The error object. */
#include "common/model/error.h"

jv sl_error_new(const char *code, int status, const char *title, const char *detail)
{
	jv err = jv_object();
	if (code)
		err = sl_json_set(err, "code", jv_string(code));
	if (status)
		err = sl_json_set(err, "status", jv_number(status));
	if (title)
		err = sl_json_set(err, "title", jv_string(title));
	if (detail)
		err = sl_json_set(err, "detail", jv_string(detail));
	return err;
}
