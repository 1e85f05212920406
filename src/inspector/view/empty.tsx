import type { Child } from 'hono/jsx'

/** What stands where there is nothing to show: what that means, and what to do next. */
export function Empty({ title, children }: { readonly title: string; readonly children?: Child }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  )
}

/** The list before the first delivery. */
export function NoDeliveries() {
  return (
    <Empty title="No deliveries yet">
      <p>They appear here as they arrive. Send a first one from another terminal:</p>
      <pre class="command">relay trigger push</pre>
      <p>
        Or let a code host send them: <code>relay serve --tunnel</code> prints the address for its webhook
        settings.
      </p>
    </Empty>
  )
}

/** The list where no delivery passes the filters. */
export function NothingMatches() {
  return (
    <Empty title="No delivery matches these filters">
      <p>Change or clear them to see others. New deliveries that match appear here by themselves.</p>
    </Empty>
  )
}
