export { startRelay, type TestRelay, type TestRelayOptions } from './start-relay.js'
