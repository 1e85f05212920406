// Keeps Node's own `fetch`. The undici package, which smee-client loads, replaces its dispatcher if undici loads before
// the first use of `fetch`, and importing the kit must not change `fetch`. Reading one of its classes makes Node set up
// its own dispatcher. This is a module of its own because imports run before any statement of the importing module.
void globalThis.Response
