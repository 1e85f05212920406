// The types in which senders' own packages describe what they send, for the examples that come with relay.

/** How the types of a package describe what a sender sends. */
interface PackageTypes {
  readonly imports: string
  /** The expression of an event's type. Undefined: the package has none for it. */
  readonly typeOf: (event: string, payload: Payload) => string | undefined
  /** Members that the package describes as another kind of value than is sent. */
  readonly otherwise?: RegExp
  /** Members that the package requires, and the sender no longer sends, or not in all of its objects. */
  readonly gone?: readonly string[]
  /** True if some members are null that the package gives a value. */
  readonly nullable?: true
  /** True if more is sent than the package describes. */
  readonly open?: true
}

interface Payload {
  readonly type?: string
  readonly event?: { readonly type?: string }
}

const GITLAB: Readonly<Record<string, string>> = {
  'Push Hook': 'Push',
  'Tag Push Hook': 'Tag',
  'Issue Hook': 'Issue',
  'Merge Request Hook': 'MergeRequest',
  'Note Hook': 'MergeRequestNote',
  'Pipeline Hook': 'Pipeline',
  'Job Hook': 'Job',
  'Release Hook': 'Release',
  'Deployment Hook': 'Deployment',
}

const SHOPIFY: Readonly<Record<string, string>> = {
  orders: 'IOrder',
  fulfillments: 'IFulfillment',
  refunds: 'IRefund',
  products: 'IProduct',
  customers: 'ICustomer',
  inventory_levels: 'IInventoryLevel',
}

const SLACK: Readonly<Record<string, string>> = {
  block_actions: 'Bolt.BlockAction<Bolt.ButtonAction>',
  view_submission: 'Bolt.ViewSubmitAction',
  shortcut: 'Bolt.GlobalShortcut',
  message_action: 'Bolt.MessageShortcut',
}

/** The package exports the types of what it has read, and keeps those of what is sent to itself. */
const PADDLE = './node_modules/@paddle/paddle-node-sdk/dist/types'
const PADDLE_TYPES: Readonly<Record<string, string>> = {
  transaction: 'Transaction',
  subscription: 'Subscription',
  'subscription.created': 'SubscriptionCreated',
  customer: 'Customer',
}

/** By the name of the folder of examples. */
export const EXAMPLE_TYPES: Readonly<Record<string, PackageTypes>> = {
  stripe: {
    imports: "import type Stripe from 'stripe'",
    typeOf: (event) => `Extract<Stripe.Event, { type: '${event}' }>`,
    // Text, and objects in the package.
    otherwise: /_decimal$/,
  },
  slack: {
    imports: "import type * as Bolt from '@slack/bolt'; import type * as Slack from '@slack/types'",
    typeOf: (event, { type = '', event: inner }) =>
      inner === undefined
        ? (SLACK[type] ?? 'Bolt.SlashCommand')
        : `Bolt.EnvelopedEvent<${event === 'message' ? "Omit<Slack.GenericMessageEvent, 'subtype'>" : `Extract<Slack.SlackEvent, { type: '${event}' }>`}>`,
    nullable: true,
    open: true,
  },
  shopify: {
    imports: "import type Shopify from 'shopify-api-node'",
    typeOf: (event) => {
      const name = SHOPIFY[event.split('/', 1).join('')]
      return event === 'customers/data_request' || name === undefined ? undefined : `Shopify.${name}`
    },
    // Numbers and truth values, and text in the package; an order's addresses are no customer's.
    otherwise:
      /^(?:subtotal|total_tax|restock|receipt|customer|user_id|fulfillment_status|(?:billing|shipping)_address)$/,
    gone: `gateway processing_method notify_customer variant_inventory_management latitude longitude fulfillment_service grams
      inventory_management presentment_prices requires_shipping tax_code weight weight_unit`.split(/\s+/),
    nullable: true,
    open: true,
  },
  gitlab: {
    imports: "import type * as Gitlab from '@gitbeaker/core'",
    typeOf: (event) => `Gitlab.Webhook${GITLAB[event.split('.', 1).join('')]}EventSchema`,
    // A number, and text in the package; users and repositories with fewer members; the changes that there were.
    otherwise: /^(?:noteable_id|user|repository|changes)$/,
    gone: ['event_name'],
    nullable: true,
    open: true,
  },
  linear: {
    imports: "import type * as Linear from '@linear/sdk/webhooks'",
    typeOf: (event) => `Linear.EntityWebhookPayloadWith${event.split('.', 1).join('')}Data`,
  },
  standard: {
    imports: "import type * as Clerk from '@clerk/backend'; import type * as Resend from 'resend'",
    typeOf: (event) =>
      /^(?:email|contact)\./.test(event)
        ? `Extract<Resend.WebhookEventPayload, { type: '${event}' }>`
        : `Clerk.WebhookEvent & { type: '${event}' }`,
    // Its object is named after the way of verification.
    otherwise: /^verification$/,
    open: true,
  },
  paddle: {
    imports: `import type { IEventsResponse } from '${PADDLE}/types/events/events-response.js'; import type * as Paddle from '${PADDLE}/notifications/types/index.js'`,
    // Only the method in use is described.
    otherwise: /^method_details$/,
    // Its items of adjustments have more totals than are sent.
    typeOf: (event) =>
      event.startsWith('adjustment.')
        ? undefined
        : `IEventsResponse<Paddle.I${PADDLE_TYPES[event] ?? PADDLE_TYPES[event.split('.', 1).join('')]}NotificationResponse>`,
    open: true,
  },
  zoom: {
    imports: "import type * as Zoom from './node_modules/@zoom/rivet/meetings/meetings.js'",
    typeOf: (event) => `Extract<Zoom.MeetingsEvents, { event: '${event}' }>`,
    open: true,
  },
  telegram: {
    imports: "import type { Update } from '@grammyjs/types'",
    typeOf: () => 'Update',
  },
  mux: {
    imports: "import type * as Mux from '@mux/mux-node/resources/webhooks/webhooks'",
    typeOf: (event) => `Extract<Mux.UnwrapWebhookEvent, { type: '${event}' }>`,
    // Text, and a number in the package.
    otherwise: /^created_at$/,
    nullable: true,
    open: true,
  },
}
