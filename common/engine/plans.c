/* The plans that a process knows, by content hash, by pointer and by the event types that they consume. */
#include "common/engine/plans.h"

#include "common/base/log.h"
#include "common/base/text.h"
#include "common/model/event.h"
#include <stdlib.h>
#include <string.h>

struct known { /* one plan */
	struct sl_plan *plan;
	bool listening;
};
struct pointer {
	char *version, *hash;
	bool active;
};
struct workflow { /* all pointers of one workflow id */
	struct pointer *pointers;
	int count;
	const struct known *current; /* the highest active one, when its plan is known */
};
struct ref {
	const struct known *known;
	const struct sl_event_def *def;
	bool start;
};
struct refs { /* references to one event type */
	struct ref *items;
	int count, cap;
};
struct space {			 /* one namespace */
	struct sl_map plans;	 /* hash -> struct known */
	struct sl_map workflows; /* id -> struct workflow */
	struct sl_map types;	 /* type -> struct refs */
	struct refs any;	 /* references without a type */
};
struct sl_plans {
	struct sl_map spaces; /* ns -> struct space */
};

static void *alloc(void *old, size_t size)
{
	void *p = realloc(old, size);
	if (!p)
		sl_bug(__FILE__, __LINE__, "out of memory");
	return p;
}

static void *alloc_zero(size_t size)
{
	return memset(alloc(NULL, size), 0, size);
}

static char *copy_text(const char *text)
{
	size_t len = strlen(text) + 1;
	return memcpy(alloc(NULL, len), text, len);
}

/* --- construction and release --- */

struct sl_plans *sl_plans_new(void)
{
	return alloc_zero(sizeof(struct sl_plans));
}

static void known_free(void *arg)
{
	struct known *known = arg;
	sl_plan_unref(known->plan);
	free(known);
}

static void workflow_free(void *arg)
{
	struct workflow *wf = arg;
	for (int i = 0; i < wf->count; i++) {
		free(wf->pointers[i].version);
		free(wf->pointers[i].hash);
	}
	free(wf->pointers);
	free(wf);
}

static void refs_free(void *arg)
{
	struct refs *refs = arg;
	free(refs->items);
	free(refs);
}

static void space_free(void *arg)
{
	struct space *space = arg;
	sl_map_release(&space->types, refs_free);
	free(space->any.items);
	sl_map_release(&space->workflows, workflow_free);
	sl_map_release(&space->plans, known_free);
	free(space);
}

void sl_plans_free(struct sl_plans *plans)
{
	if (!plans)
		return;
	sl_map_release(&plans->spaces, space_free);
	free(plans);
}

static struct space *space_of(const struct sl_plans *plans, const char *ns)
{
	return sl_map_get(&plans->spaces, ns);
}

static struct space *space_make(struct sl_plans *plans, const char *ns)
{
	struct space *space = space_of(plans, ns);
	if (!space) {
		space = alloc_zero(sizeof(*space));
		sl_map_set(&plans->spaces, ns, space);
	}
	return space;
}

/* --- versions --- */

/* Semantic versions by precedence; what is none (A111; Direktiv and CNCF have no versions) is below all of them. */
static int version_cmp(const char *a, const char *b)
{
	bool ok_a = sl_semver_valid(a), ok_b = sl_semver_valid(b);
	if (ok_a && ok_b)
		return sl_semver_cmp(a, b);
	return ok_a != ok_b ? (int)ok_a - (int)ok_b : strcmp(a, b);
}

/* A168: the highest active version listens, no other one. */
static void workflow_update(struct space *space, const char *id)
{
	struct workflow *wf = sl_map_get(&space->workflows, id);
	const struct pointer *best = NULL;
	for (int i = 0; wf && i < wf->count; i++)
		if (wf->pointers[i].active && (!best || version_cmp(wf->pointers[i].version, best->version) > 0))
			best = &wf->pointers[i];
	struct known *current = best ? sl_map_get(&space->plans, best->hash) : NULL;
	sl_map_each(&space->plans, e)
	{
		struct known *known = e->value;
		if (strcmp(known->plan->id, id) == 0)
			known->listening = known == current;
	}
	if (wf)
		wf->current = current;
}

void sl_plans_point(
	struct sl_plans *plans, const char *ns, const char *id, const char *version, const char *hash, bool active)
{
	struct space *space = space_make(plans, ns);
	struct workflow *wf = sl_map_get(&space->workflows, id);
	version = version ? version : "";
	if (!wf) {
		wf = alloc_zero(sizeof(*wf));
		sl_map_set(&space->workflows, id, wf);
	}
	int i = 0;
	while (i < wf->count && strcmp(wf->pointers[i].version, version) != 0)
		i++;
	if (i == wf->count) {
		wf->pointers = alloc(wf->pointers, sizeof(*wf->pointers) * (size_t)(wf->count + 1));
		wf->pointers[wf->count++] = (struct pointer){.version = copy_text(version)};
	}
	char *copy = copy_text(hash ? hash : "");
	free(wf->pointers[i].hash);
	wf->pointers[i].hash = copy;
	wf->pointers[i].active = active;
	workflow_update(space, id);
}

struct sl_plan *sl_plans_by_hash(const struct sl_plans *plans, const char *ns, const char *hash)
{
	struct space *space = space_of(plans, ns);
	struct known *known = space ? sl_map_get(&space->plans, hash) : NULL;
	return known ? known->plan : NULL;
}

static const struct pointer *pointer_of(
	const struct sl_plans *plans, const char *ns, const char *id, const char *version)
{
	struct space *space = space_of(plans, ns);
	struct workflow *wf = space ? sl_map_get(&space->workflows, id) : NULL;
	for (int i = 0; wf && i < wf->count; i++)
		if (strcmp(wf->pointers[i].version, version) == 0)
			return &wf->pointers[i];
	return NULL;
}

struct sl_plan *sl_plans_current(const struct sl_plans *plans, const char *ns, const char *id, const char *version)
{
	struct space *space = space_of(plans, ns);
	if (version) {
		const struct pointer *pointer = pointer_of(plans, ns, id, version);
		return pointer && pointer->active ? sl_plans_by_hash(plans, ns, pointer->hash) : NULL;
	}
	struct workflow *wf = space ? sl_map_get(&space->workflows, id) : NULL;
	return wf && wf->current ? wf->current->plan : NULL;
}

const char *sl_plans_pointer(
	const struct sl_plans *plans, const char *ns, const char *id, const char *version, bool *ret_active)
{
	const struct pointer *pointer = pointer_of(plans, ns, id, version ? version : "");
	if (!pointer)
		return NULL;
	if (ret_active)
		*ret_active = pointer->active;
	return pointer->hash;
}

void sl_plans_each(const struct sl_plans *plans, const char *ns,
	void (*visit)(void *arg, struct sl_plan *plan, bool listening), void *arg)
{
	struct space *space = space_of(plans, ns);
	if (!space)
		return;
	sl_map_each(&space->plans, e)
	{
		const struct known *known = e->value;
		visit(arg, known->plan, known->listening);
	}
}

/* --- event references of one plan --- */

static void mark_cond(struct sl_plan *plan, const struct sl_cond *cond)
{
	if (cond->kind == SL_COND_EVENT)
		plan->events[cond->event].waited = true;
	for (int i = 0; i < cond->count; i++)
		mark_cond(plan, &cond->items[i]);
}

static bool def_has_key(const struct sl_event_def *def, const char *name)
{
	for (int i = 0; i < def->key_count; i++)
		if (strcmp(def->keys[i].name, name) == 0)
			return true;
	return false;
}

/* Does the start, whichever way it happens, bind the attribute? */
static bool start_binds(const struct sl_plan *plan, const char *name)
{
	const struct sl_start_events *start = &plan->start;
	int have = 0;
	for (int i = 0; i < start->count; i++)
		have += def_has_key(&plan->events[start->events[i]], name);
	return start->all ? have > 0 : have > 0 && have == start->count;
}

void sl_plan_mark_events(struct sl_plan *plan)
{
	for (int i = 0; i < plan->event_count; i++)
		plan->events[i].waited = plan->events[i].may_be_unbound = false;
	sl_map_each(&plan->nodes, e)
	{
		const struct sl_node *node = e->value;
		if (node->kind != SL_NODE_AWAIT || node == plan->start.await)
			continue;
		for (int i = 0; i < node->u.await.alt_count; i++)
			mark_cond(plan, &node->u.await.alts[i].cond);
	}
	for (int i = 0; i < plan->event_count; i++) {
		struct sl_event_def *def = &plan->events[i];
		for (int k = 0; def->waited && k < def->key_count; k++)
			if (def->keys[k].value == SL_NO_EXPR && !start_binds(plan, def->keys[k].name))
				def->may_be_unbound = true;
	}
}

static bool is_start(const struct sl_plan *plan, int event)
{
	for (int i = 0; i < plan->start.count; i++)
		if (plan->start.events[i] == event)
			return true;
	return false;
}

bool sl_plan_join(const struct sl_plan *plan, const char *const **ret_names, int *ret_count)
{
	if (!plan->start.all || plan->start.count < 2)
		return false;
	*ret_names = plan->start.common;
	*ret_count = plan->start.common_count;
	return true;
}

static bool names_equal(const char *const *a, int a_count, const char *const *b, int b_count)
{
	bool same = a_count == b_count;
	for (int i = 0; same && i < a_count; i++)
		same = strcmp(a[i], b[i]) == 0;
	return same;
}

static jv want_of(const struct sl_event_def *def)
{
	jv want = jv_object();
	if (def->type)
		want = sl_json_set(want, "type", jv_string(def->type));
	if (def->source)
		want = sl_json_set(want, "source", jv_string(def->source));
	if (def->filter_count) {
		jv filters = jv_object();
		for (int i = 0; i < def->filter_count; i++)
			filters = sl_json_set(filters, def->filters[i].name, jv_string(def->filters[i].value));
		want = sl_json_set(want, "filters", filters);
	}
	return want;
}

jv sl_plan_wants(const struct sl_plan *plan, const char *const *names, int count)
{
	const char *const *join;
	int join_count;
	bool joins_here = sl_plan_join(plan, &join, &join_count) && names_equal(join, join_count, names, count);
	jv wants = jv_array();
	for (int i = 0; i < plan->event_count; i++) {
		const struct sl_event_def *def = &plan->events[i];
		bool start = is_start(plan, i);
		if (def->produced || !(def->waited || start))
			continue;
		bool here = def->set >= 0 && names_equal((const char *const *)plan->sets[def->set].names,
						     plan->sets[def->set].count, names, count);
		if (here || (start && joins_here))
			wants = jv_array_append(wants, want_of(def));
	}
	return wants;
}

/* --- the index by type --- */

static void refs_add(struct refs *refs, struct ref ref)
{
	if (refs->count == refs->cap) {
		refs->cap = refs->cap ? 2 * refs->cap : 4;
		refs->items = alloc(refs->items, sizeof(*refs->items) * (size_t)refs->cap);
	}
	refs->items[refs->count++] = ref;
}

void sl_plans_add(struct sl_plans *plans, const char *ns, struct sl_plan *plan)
{
	struct space *space = space_make(plans, ns);
	if (sl_map_get(&space->plans, plan->hash))
		return;
	sl_plan_mark_events(plan);
	struct known *known = alloc_zero(sizeof(*known));
	known->plan = sl_plan_ref(plan);
	sl_map_set(&space->plans, plan->hash, known);
	for (int i = 0; i < plan->event_count; i++) {
		const struct sl_event_def *def = &plan->events[i];
		struct ref ref = {.known = known, .def = def, .start = is_start(plan, i)};
		if (def->produced || !(def->waited || ref.start))
			continue;
		struct refs *refs = def->type ? sl_map_get(&space->types, def->type) : &space->any;
		if (!refs) {
			refs = alloc_zero(sizeof(*refs));
			sl_map_set(&space->types, def->type, refs);
		}
		refs_add(refs, ref);
	}
	workflow_update(space, plan->id);
}

static void refs_drop(struct refs *refs, const struct known *known)
{
	int kept = 0;
	for (int i = 0; i < refs->count; i++)
		if (refs->items[i].known != known)
			refs->items[kept++] = refs->items[i];
	refs->count = kept;
}

void sl_plans_forget(struct sl_plans *plans, const char *ns, const char *hash)
{
	struct space *space = space_of(plans, ns);
	struct known *known = space ? sl_map_del(&space->plans, hash) : NULL;
	if (!known)
		return;
	sl_map_each(&space->types, e) refs_drop(e->value, known);
	refs_drop(&space->any, known);
	workflow_update(space, known->plan->id);
	known_free(known);
}

void sl_plans_refs(const struct sl_plans *plans, const char *ns, const char *type,
	void (*visit)(void *arg, const struct sl_event_ref *ref), void *arg)
{
	struct space *space = space_of(plans, ns);
	const struct refs *refs = !space ? NULL : type ? sl_map_get(&space->types, type) : &space->any;
	for (int i = 0; refs && i < refs->count; i++) {
		const struct ref *ref = &refs->items[i];
		struct sl_event_ref view = {.plan = ref->known->plan,
			.def = ref->def,
			.start = ref->start,
			.listening = ref->known->listening};
		visit(arg, &view);
	}
}

/* --- matching --- */

static bool attr_equals(jv ev, const char *name, const char *wanted)
{
	struct sl_buf have;
	sl_buf_init(&have);
	bool same = sl_event_canonical(ev, name, &have) && have.len == strlen(wanted) &&
		    (!have.len || memcmp(have.data, wanted, have.len) == 0);
	sl_buf_release(&have);
	return same;
}

bool sl_event_matches(const char *type, const char *source, const struct sl_attr_filter *filters, int filter_count,
	jv ev, struct sl_mismatch *ret_miss)
{
	struct sl_mismatch miss = {NULL, NULL};
	const char *have_type = sl_event_attr(ev, "type"), *have_source = sl_event_attr(ev, "source");
	if (type && (!have_type || strcmp(have_type, type) != 0))
		miss = (struct sl_mismatch){"type", type};
	else if (source && (!have_source || strcmp(have_source, source) != 0))
		miss = (struct sl_mismatch){"source", source};
	for (int i = 0; !miss.attribute && i < filter_count; i++)
		if (!attr_equals(ev, filters[i].name, filters[i].value))
			miss = (struct sl_mismatch){filters[i].name, filters[i].value};
	if (ret_miss && miss.attribute)
		*ret_miss = miss;
	return !miss.attribute;
}

bool sl_event_def_matches(const struct sl_event_def *def, jv ev, struct sl_mismatch *ret_miss)
{
	return sl_event_matches(def->type, def->source, def->filters, def->filter_count, ev, ret_miss);
}
