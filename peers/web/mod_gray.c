/*
 * Colour to gray as an output filter of Apache 2.4: binary PPM becomes PGM. Content comes in buckets of any size, so what
 * is left of a pixel is carried over.
 */
#include "httpd.h"
#include "http_config.h"
#include "http_protocol.h"
#include "apr_buckets.h"
#include "apr_strings.h"
#include "util_filter.h"

struct state {
	apr_bucket_brigade *out;
	unsigned char pixel[3];
	int in_pixel;
	int in_head;	/* bytes of the head that were passed on */
	int lines;	/* lines of the head that have ended */
};

static size_t gray(const unsigned char *restrict in, unsigned char *restrict out, size_t pixels)
{
	for (size_t i = 0; i < pixels; i++)
		out[i] = (in[3 * i] >> 2) + 5 * (in[3 * i + 1] >> 3) + (in[3 * i + 2] >> 3);
	return pixels;
}

/* The length of the result, if the first bucket has the whole head. */
static void set_length(request_rec *r, apr_bucket_brigade *in)
{
	const char *length = apr_table_get(r->headers_out, "Content-Length"), *data;
	apr_bucket *first = APR_BRIGADE_FIRST(in);
	apr_size_t n, head = 0;
	int lines = 0;

	apr_table_unset(r->headers_out, "Content-Length");
	if (!length || first == APR_BRIGADE_SENTINEL(in) || APR_BUCKET_IS_METADATA(first))
		return;
	if (apr_bucket_read(first, &data, &n, APR_BLOCK_READ) != APR_SUCCESS)
		return;
	while (head < n && lines < 3)
		lines += data[head++] == '\n';
	if (lines == 3)
		ap_set_content_length(r, head + (apr_atoi64(length) - head) / 3);
}

static apr_bucket *transform(ap_filter_t *f, struct state *state, const char *data, apr_size_t n)
{
	const unsigned char *in = (const unsigned char *)data, *end = in + n;
	unsigned char *start = malloc(n / 3 + 64), *out = start;

	if (!start)
		return NULL;
	for (; state->lines < 3 && in < end; in++) {
		*out++ = state->in_head++ == 1 ? '5' : *in;
		state->lines += *in == '\n';
	}
	while (state->in_pixel && in < end) {
		state->pixel[state->in_pixel++] = *in++;
		if (state->in_pixel == 3) {
			out += gray(state->pixel, out, 1);
			state->in_pixel = 0;
		}
	}
	out += gray(in, out, (end - in) / 3);
	for (in += (end - in) / 3 * 3; in < end; in++)
		state->pixel[state->in_pixel++] = *in;
	return apr_bucket_heap_create((char *)start, out - start, free, f->c->bucket_alloc);
}

static apr_status_t filter(ap_filter_t *f, apr_bucket_brigade *in)
{
	struct state *state = f->ctx;

	if (!state) {
		state = f->ctx = apr_pcalloc(f->r->pool, sizeof *state);
		state->out = apr_brigade_create(f->r->pool, f->c->bucket_alloc);
		set_length(f->r, in);
		ap_set_content_type(f->r, "image/x-portable-graymap");
	}
	for (apr_bucket *b = APR_BRIGADE_FIRST(in); b != APR_BRIGADE_SENTINEL(in); b = APR_BUCKET_NEXT(b)) {
		const char *data;
		apr_size_t n;
		apr_bucket *made;
		apr_status_t status;

		if (APR_BUCKET_IS_METADATA(b)) {
			if (apr_bucket_copy(b, &made) == APR_SUCCESS)
				APR_BRIGADE_INSERT_TAIL(state->out, made);
			continue;
		}
		status = apr_bucket_read(b, &data, &n, APR_BLOCK_READ);
		if (status != APR_SUCCESS)
			return status;
		made = n ? transform(f, state, data, n) : NULL;
		if (made)
			APR_BRIGADE_INSERT_TAIL(state->out, made);
		else if (n)
			return APR_ENOMEM;
	}
	apr_brigade_cleanup(in);
	return ap_pass_brigade(f->next, state->out);
}

static void hooks(apr_pool_t *pool)
{
	ap_register_output_filter("GRAY", filter, NULL, AP_FTYPE_RESOURCE);
}

module AP_MODULE_DECLARE_DATA gray_module = {
	STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, NULL, hooks
};
