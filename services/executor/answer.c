/* HTTP answer -> result or error object. */
#include "services/executor/answer.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/text.h"

#define DETAIL_MAX 1024 /* bytes of a service's own words that go into an error */

const char *sl_answer_reason(int status)
{
	static const struct {
		int status;
		const char *text;
	} reasons[] = {
		{300, "Multiple Choices"},
		{301, "Moved Permanently"},
		{302, "Found"},
		{303, "See Other"},
		{304, "Not Modified"},
		{307, "Temporary Redirect"},
		{308, "Permanent Redirect"},
		{400, "Bad Request"},
		{401, "Unauthorized"},
		{402, "Payment Required"},
		{403, "Forbidden"},
		{404, "Not Found"},
		{405, "Method Not Allowed"},
		{406, "Not Acceptable"},
		{407, "Proxy Authentication Required"},
		{408, "Request Timeout"},
		{409, "Conflict"},
		{410, "Gone"},
		{411, "Length Required"},
		{412, "Precondition Failed"},
		{413, "Content Too Large"},
		{414, "URI Too Long"},
		{415, "Unsupported Media Type"},
		{416, "Range Not Satisfiable"},
		{417, "Expectation Failed"},
		{418, "I'm a teapot"},
		{421, "Misdirected Request"},
		{422, "Unprocessable Content"},
		{423, "Locked"},
		{424, "Failed Dependency"},
		{425, "Too Early"},
		{426, "Upgrade Required"},
		{428, "Precondition Required"},
		{429, "Too Many Requests"},
		{431, "Request Header Fields Too Large"},
		{451, "Unavailable For Legal Reasons"},
		{500, "Internal Server Error"},
		{501, "Not Implemented"},
		{502, "Bad Gateway"},
		{503, "Service Unavailable"},
		{504, "Gateway Timeout"},
		{505, "HTTP Version Not Supported"},
		{507, "Insufficient Storage"},
		{508, "Loop Detected"},
		{511, "Network Authentication Required"},
	};
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].status == status)
			return reasons[i].text;
	return NULL;
}

static bool type_is_json(const char *type)
{
	size_t len = type ? strcspn(type, ";") : 0;
	while (len && isspace((unsigned char)type[len - 1]))
		len--;
	return (len == 16 && strncasecmp(type, "application/json", 16) == 0) ||
	       (len == 9 && strncasecmp(type, "text/json", 9) == 0) ||
	       (len > 5 && strncasecmp(type + len - 5, "+json", 5) == 0);
}

static void add_base64(struct sl_buf *out, const unsigned char *bytes, size_t len)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (size_t i = 0; i < len; i += 3) {
		unsigned v = (unsigned)bytes[i] << 16 | (i + 1 < len ? (unsigned)bytes[i + 1] << 8 : 0) |
			     (i + 2 < len ? bytes[i + 2] : 0);
		sl_buf_addc(out, digits[v >> 18]);
		sl_buf_addc(out, digits[v >> 12 & 63]);
		sl_buf_addc(out, i + 1 < len ? digits[v >> 6 & 63] : '=');
		sl_buf_addc(out, i + 2 < len ? digits[v & 63] : '=');
	}
}

static jv text_or_base64(struct sl_bytes body)
{
	if (sl_utf8_valid(body.ptr, body.len))
		return jv_string_sized(body.ptr, (int)body.len);
	struct sl_buf text;
	sl_buf_init(&text);
	add_base64(&text, body.ptr, body.len);
	jv value = jv_string_sized(text.data, (int)text.len);
	sl_buf_release(&text);
	return value;
}

static void read_success(const struct sl_http_answer *answer, const struct sl_json_limits *limits, jv *data, jv *error)
{
	if (!answer->body.len) {
		*data = jv_object();
		return;
	}
	if (answer->content_type && !type_is_json(answer->content_type)) {
		*data = text_or_base64(answer->body);
		return;
	}
	struct sl_diags diags;
	sl_diags_init(&diags);
	int err = sl_json_parse(answer->body.ptr, answer->body.len, limits, data, &diags);
	if (err && !answer->content_type) {
		*data = text_or_base64(answer->body);
	} else if (err) {
		struct sl_buf text;
		sl_buf_init(&text);
		sl_diags_print(&diags, &text, NULL);
		while (text.len && text.data[text.len - 1] == '\n')
			text.data[--text.len] = '\0';
		*data = jv_invalid();
		*error = sl_error_new(SL_CODE_BAD_RESPONSE, 502, "The service's answer is not usable JSON",
			text.len ? text.data : sl_err_text(err));
		sl_buf_release(&text);
	}
	sl_diags_release(&diags);
}

/* RFC 9457 members, or any JSON object's usual names for a message. */
static void read_problem(const struct sl_http_answer *answer, const struct sl_json_limits *limits, jv *error)
{
	static const char *const names[] = {"type", "title", "detail", "instance"};
	jv body = jv_invalid();
	if (strncasecmp(answer->content_type, "application/problem+json", 24) != 0 ||
		sl_json_parse(answer->body.ptr, answer->body.len, limits, &body, NULL))
		return;
	for (int i = 0; i < 4; i++) {
		const char *text = sl_json_str(body, names[i]);
		if (text && *text && strcmp(text, "about:blank") != 0)
			*error = sl_json_set(*error, names[i], jv_string(text));
	}
	jv_free(body);
}

static void read_failure(const struct sl_http_answer *answer, const struct sl_json_limits *limits, jv *error)
{
	char code[16];
	snprintf(code, sizeof(code), "%d", answer->status);
	const char *reason = sl_answer_reason(answer->status);
	*error = sl_error_new(code, answer->status, reason ? reason : "The service reported an error", NULL);
	if (!answer->body.len)
		return;
	if (answer->content_type)
		read_problem(answer, limits, error);
	if (sl_json_str(*error, "detail"))
		return;
	size_t len = answer->body.len < DETAIL_MAX ? answer->body.len : DETAIL_MAX;
	const char *text = answer->body.ptr;
	while (len && len < answer->body.len && ((unsigned char)text[len] & 0xc0) == 0x80)
		len--; /* not in the middle of a character */
	if (len && sl_utf8_valid(text, len))
		*error = sl_json_set(*error, "detail", jv_string_sized(text, (int)len));
}

static jv no_answer(const struct sl_http_answer *answer)
{
	switch (answer->err) {
	case SL_ETIMEOUT:
		return sl_error_new(SL_CODE_TIMEOUT, 408, "The service did not answer in time", answer->text);
	case SL_EREFUSED:
		return sl_error_new(SL_CODE_FORBIDDEN, 403, "The egress rules forbid this call", answer->text);
	case SL_ETOOBIG:
		return sl_error_new(SL_CODE_TOO_BIG, 413, "The service's answer is too big", answer->text);
	case SL_EPARSE:
		return sl_error_new(SL_CODE_BAD_RESPONSE, 502, "The service's answer is not usable", answer->text);
	case SL_EINVAL:
		return sl_error_new("400", 400, "The request cannot be made", answer->text);
	default:
		return sl_error_new(SL_CODE_UNREACHABLE, 503, "The service cannot be reached", answer->text);
	}
}

void sl_answer_read(
	const struct sl_http_answer *answer, const struct sl_json_limits *limits, jv *ret_data, jv *ret_error)
{
	*ret_data = *ret_error = jv_invalid();
	if (answer->err)
		*ret_error = no_answer(answer);
	else if (answer->status >= 200 && answer->status < 300)
		read_success(answer, limits, ret_data, ret_error);
	else
		read_failure(answer, limits, ret_error);
}
