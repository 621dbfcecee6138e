/* Lists of messages with their paths: the todo and the outbox of a partition (R2). Each item is an Avro bytes (the
 * message with marker and fingerprint) and an Avro string (the path), so an older release's list can be read like its
 * messages. */
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/codec/codec.h"
#include "common/codec/schema.h"
#include <stdlib.h>

void sl_list_add(struct sl_buf *list, const struct sl_msg *msg, const char *path)
{
	struct sl_buf one;
	sl_buf_init(&one);
	if (sl_msg_encode(msg, &one) != 0)
		sl_bug(__FILE__, __LINE__, "a message that was made here cannot be encoded");
	sl_avro_add_bytes(list, one.data, one.len);
	sl_avro_add_bytes(list, path ? path : "", path ? strlen(path) : 0);
	sl_buf_release(&one);
}

uint64_t sl_list_unknown(struct sl_bytes list)
{
	const uint8_t *from = list.ptr ? list.ptr : (const uint8_t *)"";
	struct sl_avro_in in = {from, from + (list.ptr ? list.len : 0), false};
	while (sl_avro_left(&in) > 0) {
		struct sl_bytes one = sl_avro_bytes(&in);
		sl_avro_bytes(&in);
		if (in.bad || one.len < 10)
			return 0;
		uint64_t fp = 0;
		for (int i = 7; i >= 0; i--)
			fp = fp << 8 | ((const uint8_t *)one.ptr)[2 + i];
		if (fp != sl_schema_fingerprint() && !sl_schema_find(fp))
			return fp;
	}
	return 0;
}

static int damaged(struct sl_diags *diags)
{
	return sl_diag_error(diags, SL_EPARSE, SL_NOWHERE, NULL, "damaged list of messages");
}

int sl_list_read(
	struct sl_bytes list, struct sl_arena *arena, struct sl_list_item **ret, int *ret_count, struct sl_diags *diags)
{
	int count = 0, done = 0, err = 0;
	if (!list.ptr || list.len == 0) {
		*ret = NULL;
		*ret_count = 0;
		return 0;
	}
	struct sl_avro_in in = {list.ptr, (const uint8_t *)list.ptr + list.len, false};
	for (struct sl_avro_in scan = in; sl_avro_left(&scan) > 0 || scan.bad; count++) {
		sl_avro_bytes(&scan);
		sl_avro_bytes(&scan);
		if (scan.bad)
			return damaged(diags);
	}
	struct sl_list_item *items = SL_NEWN(arena, struct sl_list_item, count);
	for (; done < count && !err; done++) {
		struct sl_bytes one = sl_avro_bytes(&in), path = sl_avro_bytes(&in);
		if (memchr(path.ptr, 0, path.len) || !sl_utf8_valid(path.ptr, path.len)) {
			err = damaged(diags);
			break;
		}
		err = sl_msg_decode(one, arena, &items[done].msg, NULL, diags);
		if (err)
			break;
		items[done].path = sl_arena_strn(arena, path.ptr, path.len);
	}
	if (err) {
		for (int i = 0; i < done; i++)
			sl_msg_clear(&items[i].msg);
		return err;
	}
	*ret = items;
	*ret_count = count;
	return 0;
}
