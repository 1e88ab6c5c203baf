/* What a port keeps of credits (credit.h): for each class those it has been given, and those it has
 * given. Classes are InfiniBand's data lanes. */
#ifndef EMU_LINK_CREDIT_STATE_H
#define EMU_LINK_CREDIT_STATE_H

#include "link/credit.h"
#include "sim/frame.h"

struct class_credit {
    struct credit_sender tx;
    struct credit_receiver rx;
};

struct credit_state {
    uint8_t classes;       /* 0 .. classes-1 need credit; others go without */
    uint8_t width;         /* lanes that a byte stream is spread over: 4 of `4x NDR` */
    bool link_initialised; /* false: updates carry Op init */
    uint16_t to_send;      /* classes with credit to advertise */
    struct class_credit of_class[CLASSES];
    picoseconds waiting_since[CLASSES];
    struct timer refresh; /* every class is advertised again and again */
};

#endif
