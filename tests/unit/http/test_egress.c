/* Egress rules: hosts and addresses. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <string.h>

#include "common/adapters/http/http.h"

static int check_url(const char *const *allow, const char *url, enum sl_egress *how)
{
	struct sl_buf why;
	sl_buf_init(&why);
	int err = sl_egress_check_url(allow, url, how, &why);
	cr_assert_eq(err != 0, why.len > 0, "a refusal says why: %s", url);
	sl_buf_release(&why);
	return err;
}

Test(egress, urls_pass_the_allow_list_or_are_refused)
{
	static const char *const list[] = {"*.example.com", "api.test:8080", "10.0.0.0/8", "[::1]:9000", NULL};
	static const char *const hosts[] = {"*.example.com", "api.test:8080", NULL};
	static const struct { const char *const *allow; const char *url; int err; int how; } cases[] = {
		{NULL, "http://anything.test/x", 0, SL_ALLOW},
		{NULL, "https://user@anything.test:444", 0, SL_ALLOW},
		{NULL, "file:///etc/passwd", SL_EREFUSED, 0},
		{NULL, "gopher://x/", SL_EREFUSED, 0},
		{NULL, "no url at all", SL_EINVAL, 0},
		{NULL, "http://", SL_EINVAL, 0},
		{hosts, "http://a.example.com/", 0, SL_ALLOW},
		{hosts, "http://A.EXAMPLE.COM./", 0, SL_ALLOW},
		{hosts, "http://example.com/", SL_EREFUSED, 0},
		{hosts, "http://a.example.com.evil.test/", SL_EREFUSED, 0},
		{hosts, "http://evil.test/?a.example.com", SL_EREFUSED, 0},
		{hosts, "http://a.example.com@evil.test/", SL_EREFUSED, 0},
		{hosts, "http://api.test:8080/", 0, SL_ALLOW},
		{hosts, "http://api.test/", SL_EREFUSED, 0},
		{list, "http://[::1]:9000/", 0, SL_ALLOW},
		{list, "http://elsewhere.test/", 0, SL_ALLOW_BY_ADDRESS},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum sl_egress how = SL_ALLOW_BY_ADDRESS;
		cr_expect_eq(check_url(cases[i].allow, cases[i].url, &how), cases[i].err, "%s", cases[i].url);
		if (!cases[i].err)
			cr_expect_eq((int)how, cases[i].how, "%s", cases[i].url);
	}
}

static int check_address(const struct sl_http_options *opt, enum sl_egress how, const char *text)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	struct sl_buf why;
	sl_buf_init(&why);
	int err = 0;
	if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
		err = sl_egress_check_address(opt, how, (struct sockaddr *)&v4, &why);
	else if (inet_pton(AF_INET6, text, &v6.sin6_addr) == 1)
		err = sl_egress_check_address(opt, how, (struct sockaddr *)&v6, &why);
	else
		cr_assert_fail("not an address: %s", text);
	sl_buf_release(&why);
	return err;
}

Test(egress, special_addresses_are_denied_unless_allowed)
{
	static const struct { const char *text; int loopback, link_local, metadata; } cases[] = {
		{"93.184.216.34", 0, 0, 0}, {"10.1.2.3", 0, 0, 0}, {"2606:2800:220:1::1", 0, 0, 0},
		{"127.0.0.1", 1, 0, 0}, {"127.8.9.10", 1, 0, 0}, {"0.0.0.0", 1, 0, 0}, {"::1", 1, 0, 0}, {"::", 1, 0, 0},
		{"::ffff:127.0.0.1", 1, 0, 0}, {"64:ff9b::7f00:1", 1, 0, 0},
		{"169.254.1.1", 0, 1, 0}, {"fe80::1", 0, 1, 0}, {"febf::1", 0, 1, 0}, {"::ffff:169.254.1.1", 0, 1, 0},
		{"169.254.169.254", 0, 0, 1}, {"fd00:ec2::254", 0, 0, 1}, {"100.100.100.200", 0, 0, 1},
		{"::ffff:169.254.169.254", 0, 0, 1}, {"64:ff9b::a9fe:a9fe", 0, 0, 1},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int denied = cases[i].loopback || cases[i].link_local || cases[i].metadata;
		struct sl_http_options none = {0}, loopback = {.loopback = true}, link = {.link_local = true},
			metadata = {.metadata = true};
		cr_expect_eq(check_address(&none, SL_ALLOW, cases[i].text), denied ? SL_EREFUSED : 0, "%s", cases[i].text);
		cr_expect_eq(check_address(&loopback, SL_ALLOW, cases[i].text) == 0, !denied || cases[i].loopback, "%s", cases[i].text);
		cr_expect_eq(check_address(&link, SL_ALLOW, cases[i].text) == 0, !denied || cases[i].link_local, "%s", cases[i].text);
		cr_expect_eq(check_address(&metadata, SL_ALLOW, cases[i].text) == 0, !denied || cases[i].metadata, "%s", cases[i].text);
	}
}

Test(egress, a_block_admits_addresses_but_never_special_ones)
{
	static const char *const list[] = {"10.0.0.0/8", "2001:db8::/33", "0.0.0.0/0", NULL};
	static const char *const narrow[] = {"10.0.0.0/8", "2001:db8::/33", "bad/8", "10.0.0.0/99", NULL};
	struct sl_http_options wide = {.allow = list}, few = {.allow = narrow};
	cr_expect_eq(check_address(&few, SL_ALLOW_BY_ADDRESS, "10.255.0.1"), 0);
	cr_expect_eq(check_address(&few, SL_ALLOW_BY_ADDRESS, "11.0.0.1"), SL_EREFUSED);
	cr_expect_eq(check_address(&few, SL_ALLOW, "11.0.0.1"), 0, "its name was on the list");
	cr_expect_eq(check_address(&few, SL_ALLOW_BY_ADDRESS, "2001:db8:7fff::1"), 0);
	cr_expect_eq(check_address(&few, SL_ALLOW_BY_ADDRESS, "2001:db8:8000::1"), SL_EREFUSED);
	cr_expect_eq(check_address(&wide, SL_ALLOW_BY_ADDRESS, "169.254.169.254"), SL_EREFUSED);
	cr_expect_eq(check_address(&wide, SL_ALLOW_BY_ADDRESS, "127.0.0.1"), SL_EREFUSED);
}
