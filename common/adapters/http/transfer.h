/* Private to the HTTP adapter: one call on its way (transfer.c) and the multi handle on the loop (http.c).
 * Thread: the loop's. A handle is in exactly one of the caller's lists until it is freed. */
#ifndef SL_ADAPTERS_HTTP_TRANSFER_H
#define SL_ADAPTERS_HTTP_TRANSFER_H

#include <curl/curl.h>

#include "common/adapters/http/http.h"

struct http_caller;

struct http_options { /* sl_http_options with defaults filled in, owned copies */
	struct sl_http_options v;
	char **allow;
	char *user_agent, *ca_file;
};

struct sl_http_handle {
	struct http_caller *caller;
	enum sl_egress egress;		/* for the present URL */
	const struct http_options *opt; /* the caller's */
	struct sl_http_handle *prev, *next;
	CURL *easy; /* NULL: refused before it began, or finished */
	bool ready; /* in the ready list, its answer is complete */
	struct curl_slist *headers;
	char *method, *url;
	struct sl_buf body, answer, why;
	bool has_body, refused, too_big;
	size_t answer_max;
	int redirects;
	uint64_t deadline; /* in uv_now() milliseconds */
	char error[CURL_ERROR_SIZE];
	char *content_type;
	struct sl_http_answer result;
	sl_http_done_fn done;
	void *arg;
};

/* A handle that holds a copy of the request; easy is not set yet. */
struct sl_http_handle *sl_transfer_new(
	struct http_caller *caller, const struct http_options *opt, const struct sl_http_request *req, uint64_t now);
void sl_transfer_free(struct sl_http_handle *h);
/* Sets every option of `easy` for the handle's present URL. */
void sl_transfer_prepare(struct sl_http_handle *h, CURL *easy, uint64_t now);
/* Judges how curl ended: fills h->result, or changes method and URL to follow a redirect and returns true. */
bool sl_transfer_end(struct sl_http_handle *h, CURLcode code);

#endif
