import './keep-fetch.js'

export type { Fixture } from '../journal/fixture.js'
export type { DeliveryFilter, TestAttempt, TestDelivery, WaitOptions } from './deliveries.js'
export { loadFixture, type LoadFixtureOptions, loadFixtures, type NamedFixture } from './load-fixture.js'
export { signedRequest, type SignedRequestOptions } from './signed-request.js'
export { type DeliverOptions, startRelay, type TestRelay, type TestRelayOptions } from './start-relay.js'
export { startSandbox, type TestSandbox, type TestSandboxOptions } from './start-sandbox.js'
export { TEST_SECRET } from './test-secret.js'
