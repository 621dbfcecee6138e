/* A mailbox's state: subscriptions, claims, joins, early events, marks; what changes is noted for the store. */
#include "common/engine/mailbox_int.h"

#include "common/base/log.h"
#include "common/base/text.h"
#include "common/model/event.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 24 /* of a numbered field's name */

struct box_field sl_box_deleted;

const char sl_box_prefix[BOX_LIST_COUNT] = {'s', 'j', 'e'};

void *sl_box_alloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);
	if (!p)
		sl_bug(__FILE__, __LINE__, "out of memory");
	return p;
}

static char *copy_text(const char *text)
{
	size_t len = strlen(text) + 1;
	return memcpy(sl_box_alloc(len, 1), text, len);
}

/* --- fields and what changed --- */

static void field_changed(struct sl_mailbox *box, const char *name, struct box_field *field)
{
	sl_map_set(&box->dirty, name, field);
}

static void field_removed(struct sl_mailbox *box, const char *name, const struct box_field *field)
{
	if (field->stored)
		sl_map_set(&box->dirty, name, &sl_box_deleted);
	else
		sl_map_del(&box->dirty, name);
	box->bytes -= field->size;
}

/* Takes obj. */
static void field_set(struct sl_mailbox *box, struct box_field *field, jv obj, size_t size)
{
	jv_free(field->obj);
	field->obj = obj;
	box->bytes += size - field->size;
	field->size = size;
}

static void item_name(enum box_list_kind kind, int64_t n, char ret[static NAME_MAX_BYTES])
{
	snprintf(ret, NAME_MAX_BYTES, "%c:%" PRId64, sl_box_prefix[kind], n);
}

static void item_changed(struct sl_mailbox *box, enum box_list_kind kind, struct box_item *item)
{
	char name[NAME_MAX_BYTES];
	item_name(kind, item->n, name);
	field_changed(box, name, &item->field);
}

/* Appends an item with the next number. Takes obj. */
static void item_append(struct sl_mailbox *box, enum box_list_kind kind, struct box_item *item, jv obj)
{
	struct box_list *list = &box->lists[kind];
	item->field = (struct box_field){.obj = jv_invalid()};
	field_set(box, &item->field, obj, BOX_ITEM_BYTES);
	item->n = ++list->last_n;
	item->prev = list->tail;
	*(list->tail ? &list->tail->next : &list->head) = item;
	list->tail = item;
	list->count++;
	item_changed(box, kind, item);
}

static void sub_free_wants(struct box_sub *sub)
{
	for (int i = 0; i < sub->want_count; i++)
		free(sub->wants[i].filters);
	free(sub->wants);
	sub->wants = NULL;
	sub->want_count = 0;
}

static void item_free(enum box_list_kind kind, struct box_item *item)
{
	if (kind == BOX_SUBS)
		sub_free_wants((struct box_sub *)item);
	else if (kind == BOX_JOINS)
		jv_free(((struct box_join *)item)->event);
	else
		jv_free(((struct box_early *)item)->event);
	jv_free(item->field.obj);
	free(item);
}

void sl_box_item_remove(struct sl_mailbox *box, enum box_list_kind kind, struct box_item *item)
{
	struct box_list *list = &box->lists[kind];
	char name[NAME_MAX_BYTES];
	item_name(kind, item->n, name);
	field_removed(box, name, &item->field);
	*(item->prev ? &item->prev->next : &list->head) = item->next;
	*(item->next ? &item->next->prev : &list->tail) = item->prev;
	list->count--;
	item_free(kind, item);
}

/* --- construction and release --- */

void sl_box_init(struct sl_mailbox *box)
{
	box->header = (struct box_field){.obj = jv_object()};
	sl_ring_init(&box->events, 256);
	sl_ring_init(&box->effects, 1024);
}

struct sl_mailbox *sl_mailbox_new(const char *ns, const char *id)
{
	struct sl_mailbox *box = sl_box_alloc(1, sizeof(*box));
	box->ns = copy_text(ns);
	box->id = copy_text(id);
	box->local = id[0] == '@';
	sl_box_init(box);
	return box;
}

static void wf_free(void *arg)
{
	struct box_wf *wf = arg;
	jv_free(wf->claim.obj);
	free(wf->id);
	free(wf);
}

static void origin_free(void *arg)
{
	struct box_field *origin = arg;
	jv_free(origin->obj);
	free(origin);
}

void sl_box_release(struct sl_mailbox *box)
{
	for (int kind = 0; kind < BOX_LIST_COUNT; kind++)
		box_each(&box->lists[kind], it) item_free((enum box_list_kind)kind, it);
	sl_map_release(&box->workflows, wf_free);
	sl_map_release(&box->by_inst, NULL);
	sl_map_release(&box->origins, origin_free);
	sl_map_release(&box->dirty, NULL);
	sl_ring_release(&box->events);
	sl_ring_release(&box->effects);
	jv_free(box->header.obj);
	for (int i = 0; i < box->key_count; i++)
		free(box->key_names[i]);
	free(box->key_names);
}

void sl_mailbox_free(struct sl_mailbox *box)
{
	if (!box)
		return;
	sl_box_release(box);
	free(box->ns);
	free(box->id);
	free(box);
}

/* --- header --- */

void sl_box_header(struct sl_mailbox *box, const char *name, jv value)
{
	box->header.obj = sl_json_set(box->header.obj, name, value);
	field_changed(box, "h", &box->header);
}

void sl_box_read_key(struct sl_mailbox *box)
{
	jv key = sl_json_get(box->header.obj, "key");
	if (jv_get_kind(key) == JV_KIND_OBJECT && !box->key_names) {
		jv names = jv_keys(jv_copy(key)); /* sorted by code point, as key sets are */
		int n = jv_array_length(jv_copy(names));
		box->key_names = sl_box_alloc((size_t)n, sizeof(*box->key_names));
		for (; box->key_count < n; box->key_count++) {
			jv name = jv_array_get(jv_copy(names), box->key_count);
			box->key_names[box->key_count] = copy_text(jv_string_value(name));
			jv_free(name);
		}
		jv_free(names);
	}
	jv_free(key);
	box->join_workflow = sl_json_str(box->header.obj, "workflow");
}

void sl_box_learn_key(struct sl_mailbox *box, jv key)
{
	if (box->key_names || box->local) {
		jv_free(key);
		return;
	}
	sl_box_header(box, "key", key);
	sl_box_read_key(box);
}

void sl_box_join_of(struct sl_mailbox *box, const char *workflow)
{
	sl_box_header(box, "workflow", jv_string(workflow));
	sl_box_read_key(box);
}

/* --- workflows and claims --- */

struct box_wf *sl_box_wf(struct sl_mailbox *box, const char *workflow)
{
	struct box_wf *wf = sl_map_get(&box->workflows, workflow);
	if (!wf) {
		wf = sl_box_alloc(1, sizeof(*wf));
		wf->id = copy_text(workflow);
		wf->claim.obj = jv_invalid();
		sl_map_set(&box->workflows, workflow, wf);
	}
	return wf;
}

const char *sl_box_claim_of(const struct box_wf *wf)
{
	return jv_get_kind(wf->claim.obj) == JV_KIND_OBJECT ? sl_json_str(wf->claim.obj, "instance") : NULL;
}

void sl_box_claim(struct sl_mailbox *box, struct box_wf *wf, const char *inst)
{
	struct sl_buf name;
	bool had = sl_box_claim_of(wf) != NULL;
	sl_buf_init(&name);
	sl_buf_printf(&name, "c:%s", wf->id);
	if (inst) {
		jv obj = had ? jv_copy(wf->claim.obj) : jv_object();
		field_set(box, &wf->claim, sl_json_set(obj, "instance", jv_string(inst)), BOX_ITEM_BYTES);
		field_changed(box, name.data, &wf->claim);
	} else if (had) {
		field_removed(box, name.data, &wf->claim);
		jv_free(wf->claim.obj);
		wf->claim.obj = jv_invalid(); /* `stored` stays: it may be claimed again before the commit */
		wf->claim.size = 0;
	}
	box->claim_count += (inst != NULL) - had;
	sl_buf_release(&name);
}

/* --- subscriptions --- */

/* Takes filters, whose texts live on in the wants. */
static void read_filters(struct box_want *want, jv filters)
{
	want->filters = sl_box_alloc((size_t)jv_object_length(jv_copy(filters)), sizeof(*want->filters));
	jv_object_foreach(filters, name, value)
	{
		if (jv_get_kind(value) == JV_KIND_STRING)
			want->filters[want->filter_count++] =
				(struct sl_attr_filter){.name = jv_string_value(name), .value = jv_string_value(value)};
		jv_free(name);
		jv_free(value);
	}
	jv_free(filters);
}

static void read_sub(struct sl_mailbox *box, struct box_sub *sub)
{
	const char *workflow = sl_json_str(sub->item.field.obj, "workflow");
	jv wants = sl_json_get(sub->item.field.obj, "wants");
	sub_free_wants(sub);
	sub->inst = sl_json_str(sub->item.field.obj, "instance");
	sub->token = sl_json_int(sub->item.field.obj, "token", 0);
	sub->wf = sl_box_wf(box, workflow ? workflow : "");
	int n = jv_get_kind(wants) == JV_KIND_ARRAY ? jv_array_length(jv_copy(wants)) : 0;
	sub->wants = sl_box_alloc((size_t)n, sizeof(*sub->wants));
	for (int i = 0; i < n; i++) {
		jv want = jv_array_get(jv_copy(wants), i);
		struct box_want *w = &sub->wants[sub->want_count++];
		jv filters = sl_json_get(want, "filters");
		w->type = sl_json_str(want, "type");
		w->source = sl_json_str(want, "source");
		if (jv_get_kind(filters) == JV_KIND_OBJECT)
			read_filters(w, filters);
		else
			jv_free(filters);
		jv_free(want);
	}
	jv_free(wants);
}

void sl_box_sub_link(struct sl_mailbox *box, struct box_sub *sub)
{
	sub->same = sl_map_get(&box->by_inst, sub->inst);
	sl_map_set(&box->by_inst, sub->inst, sub);
	sub->wf->sub_count++;
}

static void sub_unlink(struct sl_mailbox *box, struct box_sub *sub)
{
	struct box_sub *head = sl_map_get(&box->by_inst, sub->inst);
	struct box_sub **at = &head;
	while (*at != sub)
		at = &(*at)->same;
	*at = sub->same;
	if (head)
		sl_map_set(&box->by_inst, sub->inst, head);
	else
		sl_map_del(&box->by_inst, sub->inst);
	sub->wf->sub_count--;
}

struct box_sub *sl_box_subs_of(const struct sl_mailbox *box, const char *inst)
{
	return sl_map_get(&box->by_inst, inst);
}

struct box_sub *sl_box_sub(struct sl_mailbox *box, const char *inst, const char *workflow, int64_t token, jv wants)
{
	struct box_sub *sub = sl_box_subs_of(box, inst);
	while (sub && sub->token != token)
		sub = sub->same;
	if (sub) {
		jv have = sl_json_get(sub->item.field.obj, "wants");
		bool same = sl_json_equal(have, wants) && strcmp(sub->wf->id, workflow) == 0;
		jv_free(have);
		if (same) {
			jv_free(wants);
			return NULL;
		}
		sl_box_sub_rename(box, sub, inst, workflow, wants);
		return sub;
	}
	jv obj = sl_json_set(jv_object(), "instance", jv_string(inst));
	obj = sl_json_set(obj, "workflow", jv_string(workflow));
	if (token)
		obj = sl_json_set(obj, "token", jv_number((double)token));
	obj = sl_json_set(obj, "wants", wants);
	sub = sl_box_alloc(1, sizeof(*sub));
	item_append(box, BOX_SUBS, &sub->item, obj);
	read_sub(box, sub);
	sl_box_sub_link(box, sub);
	return sub;
}

void sl_box_sub_rename(struct sl_mailbox *box, struct box_sub *sub, const char *inst, const char *workflow, jv wants)
{
	sub_unlink(box, sub);
	jv obj = jv_copy(sub->item.field.obj);
	obj = sl_json_set(obj, "instance", jv_string(inst));
	obj = sl_json_set(obj, "workflow", jv_string(workflow));
	if (jv_get_kind(wants) == JV_KIND_ARRAY)
		obj = sl_json_set(obj, "wants", wants);
	else
		jv_free(wants);
	field_set(box, &sub->item.field, obj, BOX_ITEM_BYTES);
	read_sub(box, sub);
	sl_box_sub_link(box, sub);
	item_changed(box, BOX_SUBS, &sub->item);
}

void sl_box_unsub(struct sl_mailbox *box, struct box_sub *sub)
{
	sub_unlink(box, sub);
	sl_box_item_remove(box, BOX_SUBS, &sub->item);
}

bool sl_box_sub_wants(const struct box_sub *sub, jv ev, struct sl_mismatch *ret_miss)
{
	struct sl_mismatch first = {"type", NULL}, miss;
	for (int i = 0; i < sub->want_count; i++) {
		const struct box_want *w = &sub->wants[i];
		if (sl_event_matches(w->type, w->source, w->filters, w->filter_count, ev, &miss))
			return true;
		/* The want that came nearest explains best: one whose type fits. */
		if (i == 0 || strcmp(miss.attribute, "type") != 0)
			first = miss;
	}
	if (ret_miss)
		*ret_miss = first;
	return false;
}

/* --- joins, early events, origins --- */

uint64_t sl_box_event_mark(jv ev)
{
	struct sl_buf identity;
	sl_buf_init(&identity);
	sl_event_identity(ev, &identity);
	uint64_t mark = sl_ring_mark(identity.data, identity.len);
	sl_buf_release(&identity);
	return mark;
}

static void read_join(struct box_join *join)
{
	join->workflow = sl_json_str(join->item.field.obj, "workflow");
	join->event = sl_json_get(join->item.field.obj, "event");
	join->expires_ms = sl_json_int(join->item.field.obj, "expires", 0);
	join->mark = sl_box_event_mark(join->event);
}

static void read_early(struct box_early *early)
{
	early->event = sl_json_get(early->item.field.obj, "event");
	early->expires_ms = sl_json_int(early->item.field.obj, "expires", 0);
}

static jv timed(jv ev, int64_t now_ms, int64_t expires_ms)
{
	jv obj = sl_json_set(jv_object(), "event", jv_copy(ev));
	obj = sl_json_set(obj, "time", jv_number((double)now_ms));
	return expires_ms ? sl_json_set(obj, "expires", jv_number((double)expires_ms)) : obj;
}

void sl_box_join_add(struct sl_mailbox *box, const char *workflow, jv ev, int64_t now_ms, int64_t expires_ms)
{
	struct box_join *join = sl_box_alloc(1, sizeof(*join));
	item_append(box, BOX_JOINS, &join->item,
		sl_json_set(timed(ev, now_ms, expires_ms), "workflow", jv_string(workflow)));
	read_join(join);
}

void sl_box_early_add(struct sl_mailbox *box, jv ev, int64_t now_ms, int64_t expires_ms)
{
	struct box_early *early = sl_box_alloc(1, sizeof(*early));
	item_append(box, BOX_EARLY, &early->item, timed(ev, now_ms, expires_ms));
	read_early(early);
}

bool sl_box_origin(struct sl_mailbox *box, const char *topic, int64_t partition, int64_t offset)
{
	struct sl_buf name;
	sl_buf_init(&name);
	sl_buf_printf(&name, "o:%s:%" PRId64, topic, partition);
	struct box_field *origin = sl_map_get(&box->origins, name.data + 2);
	bool fresh = !origin || (double)offset > jv_number_value(origin->obj);
	if (fresh && !origin) {
		origin = sl_box_alloc(1, sizeof(*origin));
		origin->obj = jv_invalid();
		sl_map_set(&box->origins, name.data + 2, origin);
	}
	if (fresh) {
		field_set(box, origin, jv_number((double)offset), sizeof(*origin) + name.len);
		field_changed(box, name.data, origin);
	}
	sl_buf_release(&name);
	return fresh;
}

void sl_box_item_read(struct sl_mailbox *box, enum box_list_kind kind, struct box_item *item)
{
	if (kind == BOX_SUBS)
		read_sub(box, (struct box_sub *)item);
	else if (kind == BOX_JOINS)
		read_join((struct box_join *)item);
	else
		read_early((struct box_early *)item);
}
