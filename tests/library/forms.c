/* Prints the form of each struct of dewar.h. */
#include <dewar.h>

#include <stdio.h>

#define O(type, field) printf(" %zu", offsetof(struct type, field));
#define FORM(type, fields) printf(#type " %zu", sizeof(struct type)); fields puts("");

int main(void)
{
#define T dewar_class
	FORM(dewar_class, O(T, name) O(T, permissions))
#undef T
#define T dewar_record
	FORM(dewar_record, O(T, time) O(T, granted) O(T, pid) O(T, object) O(T, operation) O(T, scontext) O(T, tcontext)
		O(T, tclass) O(T, permissions) O(T, reason) O(T, would_allow) O(T, json))
#undef T
#define T dewar_options
	FORM(dewar_options, O(T, size) O(T, name) O(T, policies) O(T, classes) O(T, class_count) O(T, entries) O(T, flags)
		O(T, audit) O(T, change) O(T, data))
#undef T
#define T dewar_about
	FORM(dewar_about, O(T, object) O(T, operation) O(T, pid))
#undef T
#define T dewar_decision
	FORM(dewar_decision, O(T, allowed) O(T, auditallow) O(T, auditdeny) O(T, seqno) O(T, permissive))
#undef T
	printf("dewar_hint %zu\n", sizeof(struct dewar_hint));
}
