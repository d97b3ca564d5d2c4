/* Has CoD compile a kernel when this object is loaded, and calls what it made. */
extern void *new_cod_parse_context(void);
extern int cod_subroutine_declaration(const char *declaration, void *context);
extern void cod_set_error_func(void *context, void (*report)(void *client, char *message));
struct code {
	void (*function)(void);
};
extern struct code *cod_code_gen(char *text, void *context);

static char text[] = {
#include "kernel.inc"
	, 0
};
static long (*made)(const unsigned char *, long, unsigned char *, long);

static void silent(void *client, char *message)
{
}

__attribute__((constructor)) static void make(void)
{
	void *context = new_cod_parse_context();
	cod_set_error_func(context, silent);
	cod_subroutine_declaration(
	    "long handle(unsigned char *in, long n, unsigned char *out, long room)", context);
	struct code *code = cod_code_gen(text, context);
	if (code)
		made = (void *)code->function;
}

long handle(const unsigned char *in, long n, unsigned char *out, long room)
{
	return made ? made(in, n, out, room) : -1;
}
