/* The engine must not know an adapter. */
#include "common/adapters/kafka/kafka.h"
