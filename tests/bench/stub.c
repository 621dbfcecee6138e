/* HTTP service for the bench: answers every request with a small JSON object. stub PORT [DELAY-MS] */
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>

static useconds_t delay_us;

static enum MHD_Result answer(void *cls, struct MHD_Connection *con, const char *url, const char *method, const char *version,
	const char *data, size_t *size, void **state)
{
	static const char body[] = "{\"ok\":true,\"price\":20}";
	static int seen;
	(void)cls, (void)url, (void)method, (void)version, (void)data;
	if (!*state) {
		*state = &seen;
		return MHD_YES;
	}
	if (*size) {
		*size = 0;
		return MHD_YES;
	}
	if (delay_us)
		usleep(delay_us); /* each connection has its own thread then */
	struct MHD_Response *r = MHD_create_response_from_buffer(sizeof(body) - 1, (void *)body, MHD_RESPMEM_PERSISTENT);
	MHD_add_response_header(r, "Content-Type", "application/json");
	enum MHD_Result ret = MHD_queue_response(con, MHD_HTTP_OK, r);
	MHD_destroy_response(r);
	return ret;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 0)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	delay_us = argc > 2 ? (useconds_t)atoi(argv[2]) * 1000 : 0;
	unsigned mode = delay_us ? MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL
				 : MHD_USE_POLL_INTERNAL_THREAD;
	struct MHD_Daemon *d = MHD_start_daemon(mode, 0, NULL, NULL, answer, NULL, MHD_OPTION_SOCK_ADDR, &at,
		MHD_OPTION_CONNECTION_TIMEOUT, 600, MHD_OPTION_END);
	if (!d)
		return 1;
	pause();
	MHD_stop_daemon(d);
	return 0;
}
