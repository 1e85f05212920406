/** A recorded delivery of Shopify at the source `shop`, with this body and no signature. */
export function shopFixture(body: string): object {
  return {
    relay: 1,
    provider: 'shopify',
    source: 'shop',
    scheme: 'shopify',
    event: 'orders/create',
    delivery: 'd1',
    headers: {},
    body,
  }
}
