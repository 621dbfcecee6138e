/* Hosts and calls: bounded in all and per host, so that one slow service does not hold up the others (design section
 * 8). Hosts with something to call and room take turns. */
#include <stdlib.h>
#include <string.h>

#include "common/app/metrics.h"
#include "common/base/log.h"
#include "services/executor/answer.h"
#include "services/executor/request.h"
#include "services/executor/work.h"

#define HOSTS_MAX 4096 /* idle ones are forgotten beyond that */

static void host_free(void *value)
{
	struct host *host = value;
	free(host->name);
	free(host);
}

static void forget_idle_hosts(struct sl_executor *ex)
{
	if (ex->hosts.count < HOSTS_MAX)
		return;
	sl_map_each(&ex->hosts, e)
	{
		struct host *host = e->value;
		if (!host->in_flight && !host->queue.first && !host->ready)
			host_free(sl_map_del(&ex->hosts, host->name));
	}
}

static struct host *find_host(struct sl_executor *ex, const char *name)
{
	struct host *host = sl_map_get(&ex->hosts, name);
	if (host)
		return host;
	forget_idle_hosts(ex);
	host = calloc(1, sizeof(*host));
	sl_assert(host);
	host->name = strdup(name);
	sl_map_set(&ex->hosts, name, host);
	return host;
}

static void make_ready(struct sl_executor *ex, struct host *host)
{
	if (host->ready || !host->queue.first || host->in_flight >= ex->opt.host_in_flight_max)
		return;
	host->ready = true;
	host->next_ready = NULL;
	if (ex->ready_last)
		ex->ready_last->next_ready = host;
	else
		ex->ready_hosts = host;
	ex->ready_last = host;
}

void calls_queue(struct act *act)
{
	struct sl_executor *ex = act->part->ex;
	act->host = find_host(ex, sl_request_host(&act->arena, act->req.url));
	ex_move(act, &act->host->queue, QUEUED);
	make_ready(ex, act->host);
}

static const char *outcome(const struct sl_http_answer *answer)
{
	if (answer->err == SL_ETIMEOUT)
		return "timeout";
	if (answer->err == SL_EREFUSED)
		return "refused";
	return answer->err || answer->status >= 400 ? "error" : "ok";
}

void calls_ended(struct act *act)
{
	struct sl_executor *ex = act->part->ex;
	ex_move(act, NULL, LANDED);
	act->handle = NULL;
	act->host->in_flight--;
	make_ready(ex, act->host);
}

static void on_answer(void *arg, const struct sl_http_answer *answer)
{
	struct act *act = arg;
	struct sl_executor *ex = act->part->ex;
	jv data, error;
	sl_metric_add_l(SL_METRIC_calls_total, outcome(answer), 1);
	sl_metric_observe_us(SL_METRIC_call_seconds, (ex_now(ex) - act->started_ms) * 1000);
	calls_ended(act);
	/* the answer is borrowed, so it is read here and not in the next turn */
	sl_answer_read(answer, &ex->opt.json, &data, &error);
	act_answer(act, data, error);
	ex_wake(ex);
}

static void start_call(struct act *act)
{
	struct sl_executor *ex = act->part->ex;
	int64_t now = ex_now(ex), left = act->msg.deadline_ms ? act->msg.deadline_ms - now : ex->opt.timeout_ms;
	act->req.timeout_ms = left;
	act->req.answer_bytes_max = ex->opt.answer_bytes_max;
	act->started_ms = now;
	act->host->in_flight++;
	ex_move(act, &ex->calling, CALLING);
	act->handle = ex->opt.caller->ops->call(ex->opt.caller, &act->req, on_answer, act);
}

void calls_start(struct sl_executor *ex)
{
	if (ex->draining)
		return;
	int64_t now = ex_now(ex);
	while (ex->ready_hosts && ex->calling.count < ex->opt.in_flight_max) {
		struct host *host = ex->ready_hosts;
		ex->ready_hosts = host->next_ready;
		if (!ex->ready_hosts)
			ex->ready_last = NULL;
		host->ready = false;
		struct act *act = host->queue.first;
		if (act && host->in_flight < ex->opt.host_in_flight_max) {
			if (act_expired(act, now))
				act_timeout(act);
			else
				start_call(act);
		}
		make_ready(ex, host);
	}
}

void calls_release(struct sl_executor *ex)
{
	sl_map_release(&ex->hosts, host_free);
}
