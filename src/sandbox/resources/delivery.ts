import type { LoggedDelivery } from '../hooks/delivery-log.js'

// JSON texts, since JSON.stringify writes neither an id of 64 bits nor a payload byte for byte.

/** Entry in the list of a hook's deliveries (https://docs.github.com/rest/repos/webhooks#list-deliveries-for-a-repository-webhook). */
export function deliveryText(delivery: LoggedDelivery): string {
  return `{"id":${delivery.id},${JSON.stringify(fieldsOf(delivery)).slice(1)}`
}

/** One delivery with request and response (https://docs.github.com/rest/repos/webhooks#get-a-delivery-for-a-repository-webhook). */
export function deliveryDetailText(delivery: LoggedDelivery): string {
  const { payload, requestHeaders, response } = delivery
  const request = `{"headers":${JSON.stringify(requestHeaders)},"payload":${payload}}`
  const answer = JSON.stringify(response ?? { headers: {}, payload: null })
  return `${deliveryText(delivery).slice(0, -1)},"request":${request},"response":${answer}}`
}

function fieldsOf(delivery: LoggedDelivery) {
  const { guid, deliveredAt, redelivery, duration, status, statusCode, event, action } = delivery
  return {
    guid,
    delivered_at: new Date(deliveredAt).toISOString(),
    redelivery,
    duration,
    status,
    status_code: statusCode,
    event,
    action,
    installation_id: delivery.installationId,
    repository_id: delivery.repositoryId,
    throttled_at: null,
    url: delivery.url,
  }
}
