import { removeField, setFraming } from "@headworks/http1";
import { newMoments } from "#exchange/exchange.ts";
import type { Content, Original, RequestMessage, ResponseMessage } from "#exchange/exchange.ts";
import { ResponseSender } from "./response-sender.ts";
import type { ExchangeClient, ReceivedHead } from "./exchange-client.ts";
import { LiveExchange } from "./live-exchange.ts";
import { RequestSender } from "./request-sender.ts";

/** An exchange whose bodies rules may wait for and replace, since both its messages are held until they have decided. */
export abstract class HeldExchange extends LiveExchange {
  protected readonly sending: RequestSender;
  protected readonly responseSender: ResponseSender;

  constructor(client: ExchangeClient, head: ReceivedHead, request: RequestMessage, isRecorded: boolean) {
    super(client.services, { client: client.facts, request, isRecorded, moments: newMoments() });
    this.sending = new RequestSender(head.framing, this);
    this.responseSender = new ResponseSender(client, head.method, this);
  }

  /** Bytes of a limited request left: more may be wanted, or its end may be due. */
  abstract onRequestMoved(): void;
  /** Bytes of a limited answer left: more may be wanted, or its end may be due. */
  abstract onResponseMoved(): void;

  requestContent(limitBytes: number): Promise<Content> {
    if (this.sending.isSent && !this.isFinished) throw new TypeError("The request is on its way already");
    return this.sending.held.content(limitBytes, this.isFinished, () => this.readRequestOn());
  }

  responseContent(limitBytes: number): Promise<Content> {
    if (this.responseSender.hasStarted && !this.isFinished) throw new TypeError("The answer is on its way already");
    return this.responseSender.held.content(limitBytes, this.isFinished, () => this.readResponseOn());
  }

  setRequestContent(bytes: Buffer): void {
    if (this.sending.isSent) throw new TypeError("The request is on its way already");
    const { fields } = this.changeRequest();
    (this.originalRequest as Original<RequestMessage>).body ??= this.sending.held.joined();
    this.sending.replace(bytes);
    setFraming(fields, this.sending.framing);
    removeField(fields, "trailer");
    this.request.trailers = undefined;
    const received = this.requestBody;
    this.requestBody = this.newCapture("request");
    received.replaceBy(this.requestBody);
    this.requestBody.add(bytes);
    this.requestBody.end();
  }

  setResponseContent(bytes: Buffer): void {
    if (this.responseSender.hasStarted) throw new TypeError("The answer is on its way already");
    const response = this.changeResponse();
    (this.originalResponse as Original<ResponseMessage>).body ??= this.responseSender.held.joined();
    this.responseSender.replace(bytes);
    this.recaptureResponse(bytes);
    setFraming(response.fields, this.responseSender.framing);
    removeField(response.fields, "trailer");
    response.trailers = undefined;
  }

  /** `body` is what the record shows of the answer from now on. */
  protected recaptureResponse(body: Buffer): void {
    if (this.responseBody.sizeBytes > 0) {
      const received = this.responseBody;
      this.responseBody = this.newCapture("response");
      received.replaceBy(this.responseBody);
    }
    if (this.responseSender.showsBody(this.response?.status ?? 0)) this.responseBody.add(body);
  }

  /** Somebody waits for the rest of the request body. */
  protected abstract readRequestOn(): void;
  /** Somebody waits for the rest of the answer's body. */
  protected abstract readResponseOn(): void;
}
