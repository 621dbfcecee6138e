/* Egress rules: which hosts and which addresses may be called (design section 8; R9). */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/adapters/http/http.h"
#include "common/base/text.h"

/* "host" or "host:port"; a pattern with a port fixes it. IPv6 literals stand in brackets in both. */
static bool target_matches(const char *pattern, const char *host, const char *host_port)
{
	const char *colon = strrchr(pattern, ':');
	bool with_port = colon && (pattern[0] != '[' || (strchr(pattern, ']') && colon > strchr(pattern, ']')));
	return sl_glob(pattern, with_port ? host_port : host);
}

static int check_parts(const char *const *allow, CURLU *parsed, enum sl_egress *ret, struct sl_buf *why)
{
	char *scheme = NULL, *host = NULL, *port = NULL;
	int err = SL_EINVAL;
	struct sl_buf host_port;
	sl_buf_init(&host_port);
	if (!curl_url_get(parsed, CURLUPART_SCHEME, &scheme, 0) && strcmp(scheme, "http") != 0 &&
		strcmp(scheme, "https") != 0) {
		sl_buf_printf(why, "scheme %s is not allowed, only http and https", scheme);
		err = SL_EREFUSED;
		goto out;
	}
	if (!scheme || curl_url_get(parsed, CURLUPART_HOST, &host, 0) ||
		curl_url_get(parsed, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT)) {
		sl_buf_adds(why, "the URL has no host");
		goto out;
	}
	sl_lower(host);
	size_t len = strlen(host);
	if (len > 1 && host[len - 1] == '.')
		host[len - 1] = '\0'; /* "example.com." is the same host */
	sl_buf_printf(&host_port, "%s:%s", host, port);
	bool any = !allow || !allow[0], blocks = false;
	for (int i = 0; !any && allow[i]; i++) {
		blocks |= strchr(allow[i], '/') != NULL;
		any = target_matches(allow[i], host, host_port.data);
	}
	err = any || blocks ? 0 : SL_EREFUSED;
	if (!err)
		*ret = any ? SL_ALLOW : SL_ALLOW_BY_ADDRESS;
	else
		sl_buf_printf(why, "host %s is not on the egress allow-list", host_port.data);
out:
	sl_buf_release(&host_port);
	curl_free(scheme);
	curl_free(host);
	curl_free(port);
	return err;
}

int sl_egress_check_url(const char *const *allow, const char *url, enum sl_egress *ret, struct sl_buf *why)
{
	CURLU *parsed = curl_url();
	if (!parsed)
		return SL_ENOMEM;
	int err;
	if (curl_url_set(parsed, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME)) {
		sl_buf_adds(why, "the URL is not well-formed");
		err = SL_EINVAL;
	} else {
		err = check_parts(allow, parsed, ret, why);
	}
	curl_url_cleanup(parsed);
	return err;
}

/* 0: fine, else the kind of address */
static const char *denied_v4(const struct sl_http_options *opt, uint32_t ip)
{
	/* The metadata services of AWS, GCP, Azure and others; Alibaba; Oracle. */
	if (ip == 0xa9fea9feu || ip == 0x646464c8u || ip == 0xc00000c0u)
		return opt->metadata ? NULL : "a metadata";
	if (ip >> 24 == 127 || ip >> 24 == 0)
		return opt->loopback ? NULL : "a loopback";
	if (ip >> 16 == 0xa9fe)
		return opt->link_local ? NULL : "a link-local";
	return NULL;
}

static const char *denied_v6(const struct sl_http_options *opt, const unsigned char *ip)
{
	static const unsigned char zero[16], mapped[12] = {[10] = 0xff, [11] = 0xff};
	static const unsigned char nat64[12] = {0x00, 0x64, 0xff, 0x9b};
	static const unsigned char aws[16] = {0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54};
	if (memcmp(ip, mapped, 12) == 0 || memcmp(ip, nat64, 12) == 0)
		return denied_v4(opt, (uint32_t)ip[12] << 24 | (uint32_t)ip[13] << 16 | (uint32_t)ip[14] << 8 | ip[15]);
	if (memcmp(ip, aws, 16) == 0)
		return opt->metadata ? NULL : "a metadata";
	if (memcmp(ip, zero, 15) == 0 && ip[15] <= 1)
		return opt->loopback ? NULL : "a loopback";
	if (ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80)
		return opt->link_local ? NULL : "a link-local";
	return NULL;
}

/* Is the address inside "ADDRESS/BITS"? */
static bool block_holds(const char *block, int family, const unsigned char *ip)
{
	char text[INET6_ADDRSTRLEN];
	const char *slash = strchr(block, '/');
	int64_t bits;
	unsigned char base[16];
	int max = family == AF_INET ? 32 : 128;
	if (!slash || (size_t)(slash - block) >= sizeof(text) || sl_int_parse(slash + 1, &bits) || bits < 0 ||
		bits > max)
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)(slash - block), block);
	if (inet_pton(family, text, base) != 1)
		return false;
	for (int i = 0; i < bits; i++)
		if ((base[i / 8] ^ ip[i / 8]) & (0x80 >> i % 8))
			return false;
	return true;
}

static bool blocks_hold(const char *const *allow, int family, const unsigned char *ip)
{
	for (; allow && *allow; allow++)
		if (block_holds(*allow, family, ip))
			return true;
	return false;
}

int sl_egress_check_address(
	const struct sl_http_options *opt, enum sl_egress how, const struct sockaddr *addr, struct sl_buf *why)
{
	char text[INET6_ADDRSTRLEN] = "?";
	const char *denied = "an unknown kind of";
	bool in_block = false;
	if (addr->sa_family == AF_INET) {
		struct sockaddr_in v4;
		memcpy(&v4, addr, sizeof(v4));
		denied = denied_v4(opt, ntohl(v4.sin_addr.s_addr));
		in_block = blocks_hold(opt->allow, AF_INET, (const unsigned char *)&v4.sin_addr);
		inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
	} else if (addr->sa_family == AF_INET6) {
		struct sockaddr_in6 v6;
		memcpy(&v6, addr, sizeof(v6));
		denied = denied_v6(opt, v6.sin6_addr.s6_addr);
		in_block = blocks_hold(opt->allow, AF_INET6, v6.sin6_addr.s6_addr);
		inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
	}
	if (denied)
		sl_buf_printf(why, "%s is %s address, which the egress rules deny", text, denied);
	else if (how == SL_ALLOW_BY_ADDRESS && !in_block)
		sl_buf_printf(why, "neither the host nor its address %s is on the egress allow-list", text);
	else
		return 0;
	return SL_EREFUSED;
}
