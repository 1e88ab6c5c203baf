/* The credit state of a port (credit.h): for each class the credit received from the far end, and
 * the credit granted to it. Classes are InfiniBand's data lanes. */
#ifndef EMU_LINK_CREDIT_STATE_H
#define EMU_LINK_CREDIT_STATE_H

#include "link/credit.h"
#include "sim/frame.h"

struct class_credit {
    struct credit_sender tx;
    struct credit_receiver rx;
};

struct port;

struct credit_state {
    struct port *port;
    uint8_t classes;       /* classes 0 .. classes-1 need credit; the others need none */
    uint8_t width;         /* physical lanes of the link: 4 for `4x NDR` */
    bool link_initialised; /* false: updates carry Op init */
    uint16_t to_send;      /* classes with credit to advertise */
    struct class_credit of_class[CLASSES];
    picoseconds waiting_since[CLASSES];
    struct timer refresh; /* advertises every class periodically */
};

#endif
