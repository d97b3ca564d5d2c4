/* Says that it runs. */
#include "attack.h"

int main(void) { return ESCAPED; }
