/* A pipeline stands on the ports, not on libuv. */
#include <uv.h>
