/* Compiles one CIL file to a binary policy of a given version: compile VERSION INPUT OUTPUT. */
#include <sepol/cil/cil.h>
#include <sepol/policydb.h>
#include <stdio.h>
#include <stdlib.h>

static char *read_all(const char *path, size_t *size)
{
	FILE *in = fopen(path, "rb");
	char *text = NULL;
	long length = -1;
	if (in && fseek(in, 0, SEEK_END) == 0)
		length = ftell(in);
	if (length > 0 && (text = malloc(length)) != NULL) {
		rewind(in);
		if (fread(text, 1, length, in) != (size_t)length)
			length = -1;
	}
	if (in)
		fclose(in);
	*size = length;
	return length > 0 ? text : NULL;
}

int main(int argc, char **argv)
{
	struct cil_db *db;
	sepol_policydb_t *policy = NULL;
	sepol_policy_file_t *file;
	size_t size;
	char *text = argc == 4 ? read_all(argv[2], &size) : NULL;
	FILE *out = text ? fopen(argv[3], "wb") : NULL;
	if (!out)
		return 2;
	cil_db_init(&db);
	cil_set_target_platform(db, SEPOL_TARGET_SELINUX);
	cil_set_policy_version(db, atoi(argv[1]));
	if (cil_add_file(db, argv[2], text, size) || cil_compile(db) || cil_build_policydb(db, &policy))
		return 1;
	if (sepol_policy_file_create(&file))
		return 1;
	sepol_policy_file_set_fp(file, out);
	return sepol_policydb_write(policy, file) || fclose(out);
}
