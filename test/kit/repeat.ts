/** Multiplies the rounds of crashes, injuries and broken connections. RELAY_TEST_REPEAT sets it. */
export const REPEAT = Number(process.env['RELAY_TEST_REPEAT'] ?? 1)
