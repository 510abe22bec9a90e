#include "engine/request.h"

const char *ct_finish_name(ct_finish f)
{
    switch (f) {
    case CT_FINISH_STOP:
        return "stop";
    case CT_FINISH_LENGTH:
        return "length";
    case CT_FINISH_CANCELLED:
        return "cancelled";
    case CT_FINISH_DEADLINE:
        return "deadline";
    case CT_FINISH_ERROR:
        return "error";
    }
    return "?";
}
