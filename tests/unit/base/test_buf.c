/* Buffers: appending numbers and formatted texts. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "common/base/buf.h"

Test(buf, numbers_and_texts_of_any_length_are_appended_whole)
{
	struct sl_buf buf;
	char part[200];
	sl_buf_init(&buf);
	sl_buf_addi(&buf, INT64_MIN);
	sl_buf_addi(&buf, 0);
	sl_buf_addi(&buf, INT64_MAX);
	cr_expect_str_eq(buf.data, "-922337203685477580809223372036854775807");
	for (size_t len = 0; len < sizeof(part); len++) {
		memset(part, 'x', len);
		part[len] = '\0';
		sl_buf_clear(&buf);
		sl_buf_printf(&buf, "<%s>", part);
		cr_expect_eq(buf.len, len + 2);
		cr_expect(buf.data[0] == '<' && buf.data[len + 1] == '>' && buf.data[len + 2] == '\0');
		sl_buf_release(&buf);
	}
	sl_buf_release(&buf);
}
