/* Error codes: 0 is success, everything else a negative number from err.def. */
#ifndef SL_BASE_ERR_H
#define SL_BASE_ERR_H

#define SL_MUST_CHECK __attribute__((warn_unused_result))
#define SL_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

enum sl_err_class { SL_CLASS_OK, SL_CLASS_RETRY, SL_CLASS_REJECT, SL_CLASS_FATAL };

enum {
	SL_OK = 0,
	SL_ERR_FIRST_ = -1000,
#define SL_ERR(name, class, text) SL_##name,
#include "err.def"
#undef SL_ERR
};

/* The code's name without prefix ("EPARSE"); "OK" for 0, "E?" for a number that is no code. */
const char *sl_err_name(int err);
/* One phrase for people. */
const char *sl_err_text(int err);
/* What becomes of the record that met the error. */
enum sl_err_class sl_err_class(int err);

#endif
