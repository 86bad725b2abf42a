/* Where errors go: the first one wins, and every function that fails passes through at_error(). */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "anytensor/frame.h"

at_context *at_context_init(at_context *cx, const at_backend *home)
{
    cx->status = AT_OK;
    cx->flags = 0;
    cx->home = home;
    cx->alloc = NULL;
    cx->memo = NULL;
    cx->op = NULL;
    cx->text[0] = '\0';
    return cx;
}

at_status at_error(at_context *cx, at_status status, const char *format, ...)
{
    if (cx->status != AT_OK) return cx->status;
    cx->status = status;
    va_list args;
    va_start(args, format);
    vsnprintf(cx->text, sizeof cx->text, format, args);
    va_end(args);
    return status;
}

const char *at_message(at_context *cx)
{
    if (cx->status == AT_OK || cx->op == NULL || *cx->op == '\0') return cx->text;
    char whole[2 * AT_MESSAGE_SIZE];
    snprintf(whole, sizeof whole, "%s: %s", cx->op, cx->text);
    memcpy(cx->text, whole, sizeof cx->text - 1);
    cx->text[sizeof cx->text - 1] = '\0';
    cx->op =
        ""; /* it is in the text from now on; not NULL, or a later call would put its name there */
    return cx->text;
}

void at_clear(at_context *cx)
{
    cx->status = AT_OK;
    cx->op = NULL;
    cx->text[0] = '\0';
}

const char *at_status_name(at_status status)
{
    switch (status) {
    case AT_OK: return "AT_OK";
    case AT_DECLINE: return "AT_DECLINE";
    case AT_EARG: return "AT_EARG";
    case AT_EDTYPE: return "AT_EDTYPE";
    case AT_ESHAPE: return "AT_ESHAPE";
    case AT_EVALUE: return "AT_EVALUE";
    case AT_EINDEX: return "AT_EINDEX";
    case AT_EOVERFLOW: return "AT_EOVERFLOW";
    case AT_EBACKEND: return "AT_EBACKEND";
    case AT_EUNSUPPORTED: return "AT_EUNSUPPORTED";
    case AT_ENOMEM: return "AT_ENOMEM";
    case AT_EFOREIGN: return "AT_EFOREIGN";
    }
    return "unknown status";
}
