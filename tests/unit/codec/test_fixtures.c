/* Messages that earlier releases wrote, kept for ever: proto/fixtures/FINGERPRINT/ holds the schema text, one KIND.bin
 * per kind and what it means as KIND.json. With SL_WRITE_GENERATED=1 the folder of the present schema is written if it
 * is not there. */
#include "helper.h"
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER SL_SOURCE_DIR "/proto/fixtures"

static void fill(struct sl_msg *msg)
{
	int n = 0;
	for (int i = 0; i < sl_msg_field_count; i++) {
		void *at = (char *)msg + sl_msg_fields[i].offset;
		n++;
		if (sl_msg_fields[i].type == SL_FIELD_STR)
			*(const char **)at = sl_msg_fields[i].name;
		else if (sl_msg_fields[i].type == SL_FIELD_I64)
			*(int64_t *)at = (int64_t)1 << (n % 60);
		else if (sl_msg_fields[i].type == SL_FIELD_BOOL)
			*(bool *)at = true;
		else
			*(jv *)at = JV_OBJECT(jv_string(sl_msg_fields[i].name),
				JV_ARRAY(jv_number(n), jv_string("Grüße"), jv_null()));
	}
}

static void write_file(const char *dir, const char *name, const char *ext, const void *bytes, size_t len)
{
	char path[600];
	snprintf(path, sizeof(path), "%s/%s.%s", dir, name, ext);
	FILE *f = fopen(path, "wb");
	cr_assert(f && fwrite(bytes, 1, len, f) == len && fclose(f) == 0);
}

static void write_present(const char *dir)
{
	const char *schema = sl_codec_schema(NULL);
	cr_assert_eq(mkdir(dir, 0777), 0);
	write_file(dir, "schema", "avsc", schema, strlen(schema));
	for (int k = 1; k < SL_MSG_KIND_COUNT_; k++) {
		struct sl_msg msg;
		struct sl_buf buf;
		sl_msg_init(&msg, (enum sl_msg_kind)k);
		fill(&msg);
		sl_buf_init(&buf);
		cr_assert_eq(sl_msg_encode(&msg, &buf), 0);
		char *text = msg_text(&msg);
		write_file(dir, sl_msg_kind_text(msg.kind), "bin", buf.data, buf.len);
		write_file(dir, sl_msg_kind_text(msg.kind), "json", text, strlen(text));
		free(text);
		sl_buf_release(&buf);
		sl_msg_clear(&msg);
	}
}

static int read_folder(const char *dir, uint64_t fp)
{
	char path[1024];
	int count = 0;
	snprintf(path, sizeof(path), "%s/schema.avsc", dir);
	char *schema = read_whole(path, NULL);
	cr_assert_not_null(schema, "%s", path);
	cr_assert_eq(sl_codec_learn(fp, schema), 0, "%s", path);
	free(schema);
	DIR *d = opendir(dir);
	cr_assert_not_null(d);
	for (struct dirent *e; (e = readdir(d));) {
		char *dot = strstr(e->d_name, ".bin");
		if (!dot)
			continue;
		struct sl_arena arena;
		struct sl_msg msg;
		size_t len = 0;
		sl_arena_init(&arena);
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		char *bytes = read_whole(path, &len);
		snprintf(path, sizeof(path), "%s/%.*s.json", dir, (int)(dot - e->d_name), e->d_name);
		char *want = read_whole(path, NULL);
		cr_assert(bytes && want, "%s", path);
		cr_assert_eq(sl_msg_decode((struct sl_bytes){bytes, len}, &arena, &msg, NULL, NULL), 0, "%s", path);
		char *got = msg_text(&msg);
		cr_assert_str_eq(got, want, "%s", path);
		free(got);
		sl_msg_clear(&msg);
		/* the same along the learned schema, although it may be ours */
		struct sl_avro_in in = {(const uint8_t *)bytes + 10, (const uint8_t *)bytes + len, false};
		sl_msg_init(&msg, SL_MSG_NONE);
		cr_assert_eq(sl_msg_read_foreign(&in, sl_schema_find(fp), &arena, &msg, NULL), 0);
		got = msg_text(&msg);
		cr_assert_str_eq(got, want, "%s", path);
		free(got);
		free(want);
		free(bytes);
		sl_msg_clear(&msg);
		sl_arena_release(&arena);
		count++;
	}
	closedir(d);
	return count;
}

Test(codec_fixtures, every_message_ever_written_is_still_read)
{
	bool present = false;
	uint64_t own;
	char dir[500];
	sl_codec_schema(&own);
	snprintf(dir, sizeof(dir), FOLDER "/%016llx", (unsigned long long)own);
	if (getenv("SL_WRITE_GENERATED") && access(dir, F_OK) != 0)
		write_present(dir);
	DIR *d = opendir(FOLDER);
	cr_assert_not_null(d);
	for (struct dirent *e; (e = readdir(d));) {
		if (strlen(e->d_name) != 16)
			continue;
		uint64_t fp = strtoull(e->d_name, NULL, 16);
		snprintf(dir, sizeof(dir), FOLDER "/%s", e->d_name);
		int count = read_folder(dir, fp);
		cr_assert_gt(count, 0, "%s is empty", dir);
		if (fp == own) {
			present = true;
			cr_assert_eq(count, SL_MSG_KIND_COUNT_ - 1, "every kind has a fixture");
		}
	}
	closedir(d);
	cr_assert(present, "no fixtures of the present schema %016llx: run this test with SL_WRITE_GENERATED=1",
		(unsigned long long)own);
}
