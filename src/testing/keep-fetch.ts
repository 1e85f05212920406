// The undici package serves Node's own fetch too when it is loaded before that was first used: nothing that importing the
// kit should do to anybody's fetch. Node sets up its own as soon as one of its classes is looked at.
void globalThis.Response
