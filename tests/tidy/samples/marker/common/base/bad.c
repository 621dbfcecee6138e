/* Something is left undone. */
/* TODO: finish this */
