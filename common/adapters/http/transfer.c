/* One HTTP call: the request as curl options, the bounded answer, redirects under the egress rules. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/adapters/http/transfer.h"

struct sl_http_handle *sl_transfer_new(
	struct http_caller *caller, const struct http_options *opt, const struct sl_http_request *req, uint64_t now)
{
	struct sl_http_handle *h = calloc(1, sizeof(*h));
	if (!h)
		abort();
	h->caller = caller;
	h->opt = opt;
	h->method = strdup(req->method);
	h->url = strdup(req->url);
	bool has_type = false;
	for (const char *const *header = req->headers; header && *header; header++) {
		has_type |= strncasecmp(*header, "content-type:", 13) == 0;
		h->headers = curl_slist_append(h->headers, *header);
	}
	/* Without these curl invents a form's content type, and waits a second for "100 Continue". */
	if (!has_type)
		h->headers = curl_slist_append(h->headers, "Content-Type:");
	h->headers = curl_slist_append(h->headers, "Expect:");
	sl_buf_init(&h->body);
	sl_buf_init(&h->answer);
	sl_buf_init(&h->why);
	h->has_body = req->body.ptr != NULL;
	if (h->has_body)
		sl_buf_add(&h->body, req->body.ptr, req->body.len);
	h->answer_max = req->answer_bytes_max ? req->answer_bytes_max : opt->v.answer_bytes_max;
	h->deadline = now + (uint64_t)(req->timeout_ms > 0 ? req->timeout_ms : opt->v.timeout_ms);
	if (!h->method || !h->url || !h->headers)
		abort();
	return h;
}

void sl_transfer_free(struct sl_http_handle *h)
{
	curl_slist_free_all(h->headers);
	free(h->method);
	free(h->url);
	free(h->content_type);
	sl_buf_release(&h->body);
	sl_buf_release(&h->answer);
	sl_buf_release(&h->why);
	free(h);
}

static size_t on_body(char *bytes, size_t size, size_t count, void *arg)
{
	struct sl_http_handle *h = arg;
	size_t len = size * count;
	if (h->answer.len + len > h->answer_max) {
		h->too_big = true;
		return 0; /* curl ends the transfer */
	}
	sl_buf_add(&h->answer, bytes, len);
	return len;
}

/* Called with the resolved address, for the first connection and for every redirect's: a name that resolves to a denied
 * address (DNS rebinding included) gets no further than here. */
static curl_socket_t on_open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *addr)
{
	struct sl_http_handle *h = arg;
	(void)purpose;
	sl_buf_clear(&h->why);
	if (sl_egress_check_address(&h->opt->v, h->egress, &addr->addr, &h->why)) {
		h->refused = true;
		return CURL_SOCKET_BAD;
	}
	return socket(addr->family, addr->socktype | SOCK_CLOEXEC, addr->protocol);
}

static void set_method(struct sl_http_handle *h, CURL *easy)
{
	if (h->has_body) {
		curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)h->body.len);
		curl_easy_setopt(easy, CURLOPT_POSTFIELDS, h->body.data ? h->body.data : "");
	} else if (strcmp(h->method, "POST") == 0 || strcmp(h->method, "PUT") == 0 || strcmp(h->method, "PATCH") == 0) {
		/* Content-Length: 0, which servers demand of these methods */
		curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)0);
		curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "");
	} else if (strcmp(h->method, "HEAD") == 0) {
		curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
	}
	curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, h->method);
}

void sl_transfer_prepare(struct sl_http_handle *h, CURL *easy, uint64_t now)
{
	const struct http_options *opt = h->opt;
	h->easy = easy;
	h->error[0] = '\0';
	sl_buf_clear(&h->answer);
	curl_easy_reset(easy);
	set_method(h, easy);
	curl_easy_setopt(easy, CURLOPT_URL, h->url);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, h->headers);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, h);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, h);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, h);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, h->error);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L); /* followed by us, under the rules */
	curl_easy_setopt(easy, CURLOPT_PROXY, "");	    /* a proxy would hide the address from the rules */
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, opt->user_agent);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)opt->v.connect_timeout_ms);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, h->deadline > now ? (long)(h->deadline - now) : 1L);
	if (opt->ca_file)
		curl_easy_setopt(easy, CURLOPT_CAINFO, opt->ca_file);
}

static void fail(struct sl_http_handle *h, int err, const char *text)
{
	h->result.err = err;
	h->result.text = text;
	h->result.body = (struct sl_bytes){0};
}

/* Credentials stay with the host that they were meant for. */
static void drop_credentials(struct sl_http_handle *h)
{
	struct curl_slist *kept = NULL;
	for (struct curl_slist *item = h->headers; item; item = item->next) {
		if (strncasecmp(item->data, "authorization:", 14) == 0 || strncasecmp(item->data, "cookie:", 7) == 0)
			continue;
		kept = curl_slist_append(kept, item->data);
	}
	curl_slist_free_all(h->headers);
	h->headers = kept;
}

static bool same_host(const char *a, const char *b)
{
	CURLU *ua = curl_url(), *ub = curl_url();
	bool same = ua && ub && !curl_url_set(ua, CURLUPART_URL, a, 0) && !curl_url_set(ub, CURLUPART_URL, b, 0);
	static const CURLUPart parts[] = {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT};
	for (size_t i = 0; same && i < sizeof(parts) / sizeof(parts[0]); i++) {
		char *ta = NULL, *tb = NULL;
		same = !curl_url_get(ua, parts[i], &ta, CURLU_DEFAULT_PORT) &&
		       !curl_url_get(ub, parts[i], &tb, CURLU_DEFAULT_PORT) && strcasecmp(ta, tb) == 0;
		curl_free(ta);
		curl_free(tb);
	}
	curl_url_cleanup(ua);
	curl_url_cleanup(ub);
	return same;
}

/* True: method, URL and headers are those of the next hop. */
static bool follow(struct sl_http_handle *h, long status)
{
	const struct http_options *opt = h->opt;
	const char *target = NULL;
	if (status != 301 && status != 302 && status != 303 && status != 307 && status != 308)
		return false;
	if (opt->v.redirects_max < 0 || curl_easy_getinfo(h->easy, CURLINFO_REDIRECT_URL, &target) || !target)
		return false;
	if (h->redirects >= opt->v.redirects_max) {
		sl_buf_clear(&h->why);
		sl_buf_printf(&h->why, "redirected more than %d times", opt->v.redirects_max);
		fail(h, SL_EPARSE, h->why.data);
		return false;
	}
	sl_buf_clear(&h->why);
	int err = sl_egress_check_url(opt->v.allow, target, &h->egress, &h->why);
	if (err) {
		fail(h, err == SL_EINVAL ? SL_EPARSE : err, h->why.data);
		return false;
	}
	if (!same_host(h->url, target))
		drop_credentials(h);
	/* RFC 9110 15.4: 303 asks for a GET; 301 and 302 after a POST are treated so by every client; 307 and 308 keep
	 * the method. */
	if (status == 303 ? strcmp(h->method, "HEAD") != 0 : status <= 302 && strcmp(h->method, "POST") == 0) {
		free(h->method);
		h->method = strdup("GET");
		h->has_body = false;
	}
	char *url = strdup(target);
	if (!url || !h->method)
		abort();
	free(h->url);
	h->url = url;
	h->redirects++;
	return true;
}

static void judge_failure(struct sl_http_handle *h, CURLcode code)
{
	const char *text = h->error[0] ? h->error : curl_easy_strerror(code);
	if (h->too_big) {
		sl_buf_clear(&h->why);
		sl_buf_printf(&h->why, "the answer is larger than %zu bytes", h->answer_max);
		fail(h, SL_ETOOBIG, h->why.data);
		return;
	}
	switch (code) {
	case CURLE_OPERATION_TIMEDOUT:
		fail(h, SL_ETIMEOUT, text);
		break;
	case CURLE_COULDNT_CONNECT:
		fail(h, h->refused ? SL_EREFUSED : SL_EUNREACHABLE, h->refused ? h->why.data : text);
		break;
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_BAD_CONTENT_ENCODING:
	case CURLE_PARTIAL_FILE:
	case CURLE_HTTP2:
	case CURLE_HTTP2_STREAM:
		fail(h, SL_EPARSE, text);
		break;
	case CURLE_URL_MALFORMAT:
		fail(h, SL_EINVAL, text);
		break;
	default:
		fail(h, SL_EUNREACHABLE, text);
		break;
	}
}

bool sl_transfer_end(struct sl_http_handle *h, CURLcode code)
{
	memset(&h->result, 0, sizeof(h->result));
	if (code != CURLE_OK) {
		judge_failure(h, code);
		return false;
	}
	long status = 0;
	const char *type = NULL;
	curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(h->easy, CURLINFO_CONTENT_TYPE, &type);
	h->result.status = (int)status;
	h->result.body = sl_buf_bytes(&h->answer);
	free(h->content_type);
	h->content_type = type ? strdup(type) : NULL;
	h->result.content_type = h->content_type;
	return follow(h, status);
}
