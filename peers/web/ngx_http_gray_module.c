/* Colour to gray as a content handler of nginx: `gray;` in a location. The file is read into memory and transformed. */
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

static char *ngx_http_gray(ngx_conf_t *cf, ngx_command_t *command, void *conf);

static ngx_command_t commands[] = {
	{ ngx_string("gray"), NGX_HTTP_LOC_CONF | NGX_CONF_NOARGS, ngx_http_gray, 0, 0, NULL },
	ngx_null_command
};

static ngx_http_module_t context = { NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL };

ngx_module_t ngx_http_gray_module = {
	NGX_MODULE_V1, &context, commands, NGX_HTTP_MODULE, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
	NGX_MODULE_V1_PADDING
};

static size_t gray(const u_char *restrict in, u_char *restrict out, size_t pixels)
{
	for (size_t i = 0; i < pixels; i++)
		out[i] = (in[3 * i] >> 2) + 5 * (in[3 * i + 1] >> 3) + (in[3 * i + 2] >> 3);
	return pixels;
}

static ngx_int_t handler(ngx_http_request_t *r)
{
	ngx_http_core_loc_conf_t *core = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
	ngx_open_file_info_t file;
	ngx_str_t path;
	ngx_buf_t *buffer;
	ngx_chain_t chain;
	ngx_int_t status = ngx_http_discard_request_body(r);
	u_char *in, *end, *out, *start;
	size_t root;
	int lines = 0;

	if (status != NGX_OK)
		return status;
	if (!ngx_http_map_uri_to_path(r, &path, &root, 0))
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	ngx_memzero(&file, sizeof file);
	file.read_ahead = core->read_ahead;
	file.directio = NGX_MAX_OFF_T_VALUE;
	file.valid = core->open_file_cache_valid;
	file.min_uses = core->open_file_cache_min_uses;
	file.errors = core->open_file_cache_errors;
	file.events = core->open_file_cache_events;
	if (ngx_open_cached_file(core->open_file_cache, &path, &file, r->pool) != NGX_OK || !file.is_file)
		return NGX_HTTP_NOT_FOUND;
	in = ngx_palloc(r->pool, file.size);
	start = out = ngx_palloc(r->pool, file.size / 3 + 64);
	if (!in || !out || pread(file.fd, in, file.size, 0) != file.size)
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	for (end = in + file.size; lines < 3 && in < end; in++) {
		lines += *in == '\n';
		*out = out == start + 1 ? '5' : *in;
		out++;
	}
	out += gray(in, out, (end - in) / 3);
	r->headers_out.status = NGX_HTTP_OK;
	r->headers_out.content_length_n = out - start;
	ngx_str_set(&r->headers_out.content_type, "image/x-portable-graymap");
	status = ngx_http_send_header(r);
	if (status == NGX_ERROR || status > NGX_OK || r->header_only)
		return status;
	buffer = ngx_calloc_buf(r->pool);
	if (!buffer)
		return NGX_ERROR;
	buffer->pos = start;
	buffer->last = out;
	buffer->memory = 1;
	buffer->last_buf = 1;
	chain.buf = buffer;
	chain.next = NULL;
	return ngx_http_output_filter(r, &chain);
}

static char *ngx_http_gray(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
	ngx_http_core_loc_conf_t *core = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
	core->handler = handler;
	return NGX_CONF_OK;
}
