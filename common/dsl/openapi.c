/* OpenAPI documents: parsing, finding an operation, its body and answer types. */
#include "common/dsl/openapi.h"
#include "common/dsl/dsl.h"
#include <stdlib.h>
#include <string.h>

int sl_openapi_fail(const struct sl_openapi *api, int code, struct sl_buf *err, const char *fmt, ...)
{
	sl_buf_printf(err, "OpenAPI document '%s': ", api->uri);
	va_list ap;
	va_start(ap, fmt);
	sl_buf_vprintf(err, fmt, ap);
	va_end(ap);
	return code;
}

static int check_version(const struct sl_openapi *api, struct sl_buf *err)
{
	if (jv_get_kind(api->root) != JV_KIND_OBJECT)
		return sl_openapi_fail(api, SL_ESCHEMA, err, "is not an object");
	const char *swagger = sl_json_str(api->root, "swagger");
	if (swagger)
		return sl_openapi_fail(api, SL_EUNSUPPORTED, err, "is Swagger %s; convert it to OpenAPI 3", swagger);
	jv version = sl_json_get(api->root, "openapi");
	struct sl_buf text;
	sl_buf_init(&text);
	int rc = 0;
	if (!sl_json_canonical(version, &text))
		rc = sl_openapi_fail(api, SL_ESCHEMA, err,
			"has no member 'openapi' with its version, so it is no OpenAPI 3 document");
	else if (text.data[0] != '3' || (text.data[1] && text.data[1] != '.') ||
		 (text.data[1] && text.data[2] != '0' && text.data[2] != '1'))
		rc = sl_openapi_fail(
			api, SL_EUNSUPPORTED, err, "version '%s' is not supported; 3.0 and 3.1 are", text.data);
	sl_buf_release(&text);
	jv_free(version);
	jv paths = sl_json_get(api->root, "paths");
	if (rc == 0 && jv_get_kind(paths) != JV_KIND_OBJECT)
		rc = sl_openapi_fail(api, SL_ESCHEMA, err, "has no object 'paths'");
	jv_free(paths);
	return rc;
}

int sl_openapi_parse(const char *text, size_t len, const char *uri, struct sl_openapi **ret, struct sl_buf *err)
{
	struct sl_openapi *api = calloc(1, sizeof(*api));
	if (!api)
		abort();
	api->uri = strdup(uri);
	api->root = jv_null();
	struct sl_diags diags;
	sl_diags_init(&diags);
	struct sl_doc *doc = NULL;
	int rc = sl_doc_parse(text, len, api->uri, &doc, &diags);
	if (rc < 0) {
		struct sl_loc loc = diags.first ? diags.first->loc : SL_NOWHERE;
		sl_openapi_fail(api, rc, err, "%s (line %d, column %d)", sl_diags_first(&diags), loc.line, loc.col);
	} else {
		api->root = sl_doc_value(doc);
		sl_doc_free(doc);
		rc = check_version(api, err);
	}
	sl_diags_release(&diags);
	if (rc < 0)
		sl_openapi_free(api);
	else
		*ret = api;
	return rc;
}

void sl_openapi_free(struct sl_openapi *api)
{
	if (!api)
		return;
	free(api->uri);
	jv_free(api->root);
	free(api);
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A fragment is percent-encoded JSON Pointer (RFC 6901 section 6). */
static void add_decoded(struct sl_buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '%' && hex(text[1]) >= 0 && hex(text[2]) >= 0) {
			sl_buf_addc(out, (char)(hex(text[1]) * 16 + hex(text[2])));
			text += 2;
		} else {
			sl_buf_addc(out, *text);
		}
	}
}

/* Reference Object (OpenAPI 3.0.3 "Reference Object"): siblings of $ref are ignored. */
int sl_openapi_deref(const struct sl_openapi *api, jv v, jv *ret, struct sl_buf *err)
{
	for (int hops = 0;; hops++) {
		const char *ref = sl_json_str(v, "$ref");
		if (!ref) {
			*ret = v;
			return 0;
		}
		int rc = 0;
		jv next = jv_invalid();
		if (hops > 20) {
			rc = sl_openapi_fail(api, SL_ESCHEMA, err, "$ref '%s' leads round in a circle", ref);
		} else if (ref[0] != '#') {
			rc = sl_openapi_fail(api, SL_EUNSUPPORTED, err, "$ref '%s' leads to another document", ref);
		} else {
			struct sl_buf pointer;
			sl_buf_init(&pointer);
			sl_buf_adds(&pointer, "");
			add_decoded(&pointer, ref + 1);
			next = sl_json_at(api->root, pointer.len ? pointer.data : "");
			sl_buf_release(&pointer);
			if (!jv_is_valid(next))
				rc = sl_openapi_fail(api, SL_ESCHEMA, err, "$ref '%s' leads nowhere", ref);
		}
		jv_free(v);
		if (rc < 0) {
			jv_free(next);
			return rc;
		}
		v = next;
	}
}

/* --- finding an operation --- */
static const char *const methods[] = {"get", "put", "post", "delete", "options", "head", "patch", "trace"};

struct found {
	int count;
	char *path;
	const char *method;
	jv item, op;
	struct sl_buf known; /* some operationIds, for the message */
	int known_count;
};

static void look_at(const char *path, jv item, const char *operation, struct found *found)
{
	for (size_t m = 0; m < sizeof(methods) / sizeof(methods[0]); m++) {
		jv op = sl_json_get(item, methods[m]);
		const char *id = sl_json_str(op, "operationId");
		if (id && strcmp(id, operation) == 0) {
			if (found->count++ == 0) {
				found->path = strdup(path);
				found->method = methods[m];
				found->item = jv_copy(item);
				found->op = jv_copy(op);
			}
		} else if (id && found->known_count++ < 5) {
			sl_buf_printf(&found->known, "%s%s", found->known.len ? ", " : "", id);
		}
		jv_free(op);
	}
}

static void found_release(struct found *found)
{
	free(found->path);
	jv_free(found->item);
	jv_free(found->op);
	sl_buf_release(&found->known);
}

static int find_operation(const struct sl_openapi *api, const char *operation, struct found *ret, struct sl_buf *err)
{
	struct found found = {.item = jv_invalid(), .op = jv_invalid()};
	sl_buf_init(&found.known);
	jv paths = sl_json_get(api->root, "paths");
	jv keys = jv_keys(jv_copy(paths));
	int rc = 0, count = jv_array_length(jv_copy(keys));
	for (int i = 0; i < count && rc == 0; i++) {
		jv key = jv_array_get(jv_copy(keys), i);
		const char *path = jv_string_value(key);
		jv item = jv_invalid();
		if (path[0] == '/') /* else an extension x-... */
			rc = sl_openapi_deref(api, sl_json_get(paths, path), &item, err);
		if (rc == 0 && jv_get_kind(item) == JV_KIND_OBJECT)
			look_at(path, item, operation, &found);
		jv_free(item);
		jv_free(key);
	}
	jv_free(keys);
	jv_free(paths);
	if (rc == 0 && found.count == 0)
		rc = sl_openapi_fail(api, SL_ENOTFOUND, err, "has no operation '%s'%s%s%s", operation,
			found.known.len ? "; it has " : "", found.known.len ? found.known.data : "",
			found.known_count > 5 ? ", ..." : "");
	else if (rc == 0 && found.count > 1)
		rc = sl_openapi_fail(
			api, SL_ESCHEMA, err, "operationId '%s' is there %d times", operation, found.count);
	if (rc < 0)
		found_release(&found);
	else
		*ret = found;
	return rc;
}

/* --- bodies --- */
static bool is_type(const char *media, const char *type)
{
	size_t n = strlen(type);
	return strncasecmp(media, type, n) == 0 && (!media[n] || media[n] == ';' || media[n] == ' ');
}

static bool is_json_suffix(const char *media)
{
	size_t n = strcspn(media, "; ");
	return n > 5 && strncasecmp(media + n - 5, "+json", 5) == 0;
}

/* The smaller the better; -1: we cannot write that. */
static int media_rank(const char *media)
{
	if (is_type(media, "application/json"))
		return 0;
	if (is_json_suffix(media))
		return 1;
	if (is_type(media, "*/*") || is_type(media, "application/*"))
		return 2;
	if (is_type(media, "application/x-www-form-urlencoded"))
		return 3;
	if (is_type(media, "text/plain") || is_type(media, "text/*"))
		return 4;
	return -1;
}

static void add_default(struct sl_arena *arena, struct sl_http_call *call, const char *name, jv fallback)
{
	for (int i = 0; i < call->param_count; i++) {
		if (call->params[i].in == SL_IN_BODY && strcmp(call->params[i].name, name) == 0) {
			jv_free(fallback);
			return;
		}
	}
	call->params[call->param_count++] = (struct sl_http_param){.name = sl_arena_str(arena, name),
		.in = SL_IN_BODY,
		.style = "form",
		.explode = true,
		.fallback = fallback};
}

/* Members of the body that have a default; takes the schema. `left` bounds the schemas looked at: allOf may go in
 * circles. */
static int body_defaults(const struct sl_openapi *api, jv given, int *left, struct sl_arena *arena,
	struct sl_http_call *call, struct sl_buf *err)
{
	jv schema;
	int rc = sl_openapi_deref(api, given, &schema, err);
	if (rc < 0)
		return rc;
	jv parts = sl_json_get(schema, "allOf");
	int part_count = jv_get_kind(parts) == JV_KIND_ARRAY ? jv_array_length(jv_copy(parts)) : 0;
	for (int i = 0; i < part_count && rc == 0 && (*left)-- > 0; i++)
		rc = body_defaults(api, jv_array_get(jv_copy(parts), i), left, arena, call, err);
	jv_free(parts);
	jv members = sl_json_get(schema, "properties");
	jv names = jv_get_kind(members) == JV_KIND_OBJECT ? jv_keys(jv_copy(members)) : jv_array();
	int count = jv_array_length(jv_copy(names));
	struct sl_http_param *params = SL_NEWN(arena, struct sl_http_param, call->param_count + count + 1);
	if (call->param_count)
		memcpy(params, call->params, sizeof(*params) * (size_t)call->param_count);
	call->params = params;
	for (int i = 0; i < count && rc == 0; i++) {
		jv name = jv_array_get(jv_copy(names), i), member;
		rc = sl_openapi_deref(api, sl_json_get(members, jv_string_value(name)), &member, err);
		if (rc == 0) {
			jv fallback = sl_json_get(member, "default");
			if (jv_is_valid(fallback))
				add_default(arena, call, jv_string_value(name), fallback);
			else
				jv_free(fallback);
			jv_free(member);
		}
		jv_free(name);
	}
	jv_free(names);
	jv_free(members);
	jv_free(schema);
	return rc;
}

/* Request Body Object. JSON is preferred, whatever the order in the document. */
static int read_body(
	const struct sl_openapi *api, jv op, struct sl_arena *arena, struct sl_http_call *call, struct sl_buf *err)
{
	jv body;
	int rc = sl_openapi_deref(api, sl_json_get(op, "requestBody"), &body, err);
	if (rc < 0)
		return rc;
	if (jv_get_kind(body) != JV_KIND_OBJECT) {
		jv_free(body);
		return 0;
	}
	jv content = sl_json_get(body, "content");
	jv types = jv_get_kind(content) == JV_KIND_OBJECT ? jv_keys(jv_copy(content)) : jv_array();
	int best = -1, best_rank = 100, count = jv_array_length(jv_copy(types));
	struct sl_buf seen;
	sl_buf_init(&seen);
	for (int i = 0; i < count; i++) {
		jv type = jv_array_get(jv_copy(types), i);
		int rank = media_rank(jv_string_value(type));
		if (rank >= 0 && rank < best_rank) {
			best = i;
			best_rank = rank;
		}
		sl_buf_printf(&seen, "%s%s", i ? ", " : "", jv_string_value(type));
		jv_free(type);
	}
	if (count == 0) {
		rc = sl_openapi_fail(
			api, SL_ESCHEMA, err, "requestBody of '%s' has no content", sl_json_str(op, "operationId"));
	} else if (best < 0) {
		rc = sl_openapi_fail(api, SL_EUNSUPPORTED, err,
			"operation '%s' takes only %s; JSON, form and plain text are supported",
			sl_json_str(op, "operationId"), seen.data);
	} else {
		jv type = jv_array_get(jv_copy(types), best);
		jv media = sl_json_get(content, jv_string_value(type));
		call->has_body = true;
		call->body_required = sl_json_bool(body, "required", false);
		call->body_type = best_rank == 2   ? "application/json"
				  : best_rank == 4 ? "text/plain"
						   : sl_arena_str(arena, jv_string_value(type));
		int left = 100;
		if (best_rank < 4)
			rc = body_defaults(api, sl_json_get(media, "schema"), &left, arena, call, err);
		jv_free(media);
		jv_free(type);
	}
	sl_buf_release(&seen);
	jv_free(types);
	jv_free(content);
	jv_free(body);
	return rc;
}

/* Accept: the media types of the successful answers, JSON first. */
static int read_accept(
	const struct sl_openapi *api, jv op, struct sl_arena *arena, struct sl_http_call *call, struct sl_buf *err)
{
	jv answers = sl_json_get(op, "responses");
	jv codes = jv_get_kind(answers) == JV_KIND_OBJECT ? jv_keys(jv_copy(answers)) : jv_array();
	jv all = jv_object(); /* a set */
	int rc = 0, count = jv_array_length(jv_copy(codes));
	for (int i = 0; i < count && rc == 0; i++) {
		jv code = jv_array_get(jv_copy(codes), i), answer = jv_invalid();
		const char *text = jv_string_value(code);
		if (text[0] == '2' || strcmp(text, "default") == 0)
			rc = sl_openapi_deref(api, sl_json_get(answers, text), &answer, err);
		jv content = rc == 0 ? sl_json_get(answer, "content") : jv_invalid();
		if (jv_get_kind(content) == JV_KIND_OBJECT)
			all = jv_object_merge(all, jv_copy(content));
		jv_free(content);
		if (rc == 0)
			jv_free(answer);
		jv_free(code);
	}
	jv_free(codes);
	jv_free(answers);
	struct sl_buf accept;
	sl_buf_init(&accept);
	jv types = jv_keys(all);
	count = jv_array_length(jv_copy(types));
	for (int json = 1; json >= 0; json--) {
		for (int i = 0; i < count; i++) {
			jv type = jv_array_get(jv_copy(types), i);
			const char *text = jv_string_value(type);
			if ((is_type(text, "application/json") || is_json_suffix(text)) == (json == 1))
				sl_buf_printf(&accept, "%s%s", accept.len ? ", " : "", text);
			jv_free(type);
		}
	}
	jv_free(types);
	call->accept = accept.len ? sl_arena_str(arena, accept.data) : "application/json";
	sl_buf_release(&accept);
	return rc;
}

int sl_openapi_call(const struct sl_openapi *api, const char *operation, struct sl_arena *arena,
	struct sl_http_call *ret, struct sl_buf *err)
{
	struct found found;
	int rc = find_operation(api, operation, &found, err);
	if (rc < 0)
		return rc;
	struct sl_http_call call = {0};
	struct sl_buf url;
	sl_buf_init(&url);
	/* Servers: the operation's, else the path's, else the document's ("Server Object"). */
	jv servers = sl_json_get(found.op, "servers");
	if (!jv_is_valid(servers))
		servers = sl_json_get(found.item, "servers");
	if (!jv_is_valid(servers))
		servers = sl_json_get(api->root, "servers");
	rc = sl_openapi_server(api, servers, &url, err);
	jv_free(servers);
	if (rc == 0)
		rc = sl_openapi_params(api, found.item, found.op, found.path, arena, &call, err);
	if (rc == 0)
		rc = read_body(api, found.op, arena, &call, err);
	if (rc == 0)
		rc = read_accept(api, found.op, arena, &call, err);
	if (rc == 0) {
		char *method = sl_arena_str(arena, found.method);
		for (char *c = method; *c; c++)
			*c = (char)(*c - 0x20);
		call.method = method;
		sl_buf_adds(&url, found.path);
		call.url = sl_arena_str(arena, url.data);
		*ret = call;
	} else {
		for (int i = 0; i < call.param_count; i++)
			jv_free(call.params[i].fallback);
	}
	sl_buf_release(&url);
	found_release(&found);
	return rc;
}
