/* Internal messages: Avro single-object encoding with our schema, with that of another release (schema-other.avsc, as
 * fingerprint 1), and lists of them (todo, outbox). What is accepted must come back the same when written again. */
#include "common/codec/codec.h"
#include "tests/fuzz/fuzz.h"

#define OTHER_FP 1

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char path[] = SL_SOURCE_DIR "/tests/fuzz/schema-other.avsc";
	char text[8192];
	(void)argc;
	(void)argv;
	FILE *file = fopen(path, "rb");
	FUZZ_HOLDS(file, "%s cannot be read", path);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	FUZZ_HOLDS(sl_codec_learn(OTHER_FP, text) == 0, "%s is no schema", path);
	return 0;
}

static void write_again(const struct sl_msg *msg)
{
	struct sl_buf first, second;
	struct sl_arena arena;
	struct sl_msg again;
	uint64_t fp;
	sl_buf_init(&first);
	sl_buf_init(&second);
	sl_arena_init(&arena);
	int err = sl_msg_encode(msg, &first);
	FUZZ_HOLDS(!err, "read but not written: %s", sl_err_name(err));
	err = sl_msg_decode(sl_buf_bytes(&first), &arena, &again, &fp, NULL);
	FUZZ_HOLDS(!err, "what we wrote we do not read: %s", sl_err_name(err));
	err = sl_msg_encode(&again, &second);
	FUZZ_HOLDS(!err && first.len == second.len && memcmp(first.data, second.data, first.len) == 0, "%s differs",
		sl_msg_kind_text(msg->kind));
	sl_msg_clear(&again);
	sl_buf_release(&first);
	sl_buf_release(&second);
	sl_arena_release(&arena);
}

static void one(struct sl_bytes bytes)
{
	struct sl_arena arena;
	struct sl_diags diags;
	struct sl_msg msg;
	uint64_t fp = 0;
	sl_arena_init(&arena);
	sl_diags_init(&diags);
	int err = sl_msg_decode(bytes, &arena, &msg, &fp, &diags);
	FUZZ_HOLDS(!err == !diags.error_count, "%s without a word", sl_err_name(err));
	if (!err) {
		write_again(&msg);
		sl_msg_clear(&msg);
	}
	sl_diags_release(&diags);
	sl_arena_release(&arena);
}

static void list(struct sl_bytes bytes)
{
	struct sl_arena arena;
	struct sl_diags diags;
	struct sl_list_item *items = NULL;
	int count = 0;
	sl_arena_init(&arena);
	sl_diags_init(&diags);
	uint64_t unknown = sl_list_unknown(bytes);
	int err = sl_list_read(bytes, &arena, &items, &count, &diags);
	FUZZ_HOLDS(err || !unknown, "read, though schema %llx is not known", (unsigned long long)unknown);
	for (int i = 0; !err && i < count; i++) {
		write_again(&items[i].msg);
		sl_msg_clear(&items[i].msg);
	}
	sl_diags_release(&diags);
	sl_arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = fuzz_exact(fuzz_in(data, size));
	struct sl_bytes bytes = {copy, size};
	one(bytes);
	list(bytes);
	free(copy);
	return 0;
}
