/* What services answer: three lines (status, media type or "-" for none, secrets in words), then the body. It becomes data or an
 * error, whose secrets are then redacted. */
#include "services/executor/answer.h"
#include "services/executor/evaluate.h"
#include "tests/fuzz/fuzz.h"

#define SIZE_MAX_BYTES (64u << 10)
#define SECRETS_MAX 4

static char *secrets[SECRETS_MAX];

static char *secret(void *arg, const char *name)
{
	(void)arg;
	return strdup(secrets[name[0] - '0']);
}

/* What goes on to sluice.instances is JSON that is read there (common/codec/msg.c). */
static void must_travel(jv value)
{
	static const struct sl_json_limits inner = {.depth_max = 256, .round_integers = true};
	struct sl_buf text;
	jv again = jv_invalid();
	sl_buf_init(&text);
	sl_json_write(&text, value);
	int err = sl_json_parse(text.data, text.len, &inner, &again, NULL);
	FUZZ_HOLDS(!err, "%s: %s", sl_err_name(err), text.data);
	FUZZ_HOLDS(sl_json_equal(value, again), "comes back different: %s", text.data);
	jv_free(again);
	sl_buf_release(&text);
}

static void check_error(jv error, const struct sl_http_answer *answer)
{
	jv status = sl_json_get(error, "status");
	FUZZ_HOLDS(sl_json_str(error, "code") && sl_json_str(error, "title"), "an error without code or title");
	FUZZ_HOLDS(jv_get_kind(status) == JV_KIND_NUMBER, "an error without status");
	FUZZ_HOLDS((answer->status >= 200 && answer->status < 300) || jv_number_value(status) == answer->status,
		"status %d became another", answer->status);
	jv_free(status);
}

/* No secret that is looked for inside text is left anywhere. */
static void check_redacted(jv value, int count)
{
	struct sl_buf text;
	sl_buf_init(&text);
	if (jv_get_kind(value) == JV_KIND_STRING) {
		size_t len = (size_t)jv_string_length_bytes(jv_copy(value));
		sl_buf_add(&text, jv_string_value(value), len);
		for (int i = 0; i < count; i++) {
			size_t n = strlen(secrets[i]);
			/* a secret of our mask's own letters may appear where two masks meet or inside one */
			bool ours = strpbrk(secrets[i], "[]redact") != NULL;
			FUZZ_HOLDS(n < 3 || ours || !memmem(text.data, text.len, secrets[i], n), "%s is left", secrets[i]);
		}
	}
	sl_buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[SECRETS_MAX] = {"0", "1", "2", "3"};
	struct fuzz_in in = fuzz_in(data, size);
	struct sl_arena arena;
	if (size > SIZE_MAX_BYTES)
		return -1;
	sl_arena_init(&arena);
	const char *status = fuzz_line(&in, &arena), *type = fuzz_line(&in, &arena);
	char *words = fuzz_line(&in, &arena), *at = NULL;
	int count = 0;
	for (char *word = words ? strtok_r(words, " ", &at) : NULL; word && count < SECRETS_MAX; word = strtok_r(NULL, " ", &at))
		secrets[count++] = word;
	char *body = fuzz_exact(in);
	int number = status ? atoi(status) : 0;
	struct sl_http_answer answer = {.status = number >= 100 && number <= 999 ? number : 200, /* RFC 9110 15 */
		.content_type = type && strcmp(type, "-") != 0 ? type : NULL,
		.body = {body, (size_t)(in.end - in.at)}};
	jv value, error;
	sl_answer_read(&answer, &sl_json_default, &value, &error);
	FUZZ_HOLDS(jv_is_valid(value) != jv_is_valid(error), "neither data nor error, or both");
	if (jv_is_valid(error))
		check_error(error, &answer);
	must_travel(jv_is_valid(value) ? value : error);
	value = sl_redact(jv_is_valid(value) ? value : error, names, count, secret, NULL);
	must_travel(value);
	check_redacted(value, count);
	jv_free(value);
	free(body);
	sl_arena_release(&arena);
	return 0;
}
