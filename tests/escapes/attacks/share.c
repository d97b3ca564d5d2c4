/* Makes objects that have numbers instead of labels, and that every domain could reach. */
#include "attack.h"
#include <mqueue.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

int main(void) {
    must_fail("shmget", shmget(7, 4096, IPC_CREAT | 0600));
    must_fail("semget", semget(7, 1, IPC_CREAT | 0600));
    must_fail("msgget", msgget(7, IPC_CREAT | 0600));
    must_fail("mq_open", mq_open("/dewar", O_CREAT | O_RDWR, 0600, NULL));
    return 0;
}
