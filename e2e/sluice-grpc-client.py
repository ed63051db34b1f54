"""Makes one kind of gRPC call and prints the result as JSON.

Arguments: the kind, the target as host:port, and for TLS the file of the authority to trust.
"""

import json
import sys
import time
from concurrent import futures

import grpc

kind, target = sys.argv[1:3]
options = (("grpc.max_receive_message_length", 16 << 20), ("grpc.enable_retries", 0))
if len(sys.argv) > 3:
    with open(sys.argv[3], "rb") as authority:
        channel = grpc.secure_channel(target, grpc.ssl_channel_credentials(authority.read()), options)
else:
    channel = grpc.insecure_channel(target, options)
MAX_S = 20


def method(name, service="echo.Echo"):
    return channel.unary_unary("/%s/%s" % (service, name))


def failure(error):
    return {
        "code": error.code().value[0],
        "details": error.details(),
        "trailing": dict(error.trailing_metadata() or ()).get("x-reason"),
    }


def told(service, name="Unary"):
    try:
        method(name, service)(b"", timeout=MAX_S)
        return {"code": 0}
    except grpc.RpcError as error:
        return failure(error)


def until_logged(wanted):
    for _ in range(400):
        events = json.loads(method("Log")(b"", timeout=MAX_S))
        if wanted in events:
            return events
        time.sleep(0.025)
    return events


def unary():
    metadata = (("x-asked", "what"), ("x-asked-bin", b"\x00\x01\xfe\xff"))
    response, call = method("Unary").with_call(b"hello", metadata=metadata, timeout=MAX_S)
    initial, trailing = dict(call.initial_metadata()), dict(call.trailing_metadata())
    return {
        "response": response.decode(),
        "code": call.code().value[0],
        "initial": initial["x-initial"],
        "initial_bin": initial["x-initial-bin"].hex(),
        "trailing": trailing["x-trailing"],
        "trailing_bin": trailing["x-trailing-bin"].hex(),
    }


def large():
    sent = bytes(range(256)) * (3 << 12)
    return {"same": method("Unary")(sent, timeout=MAX_S) == sent, "size": len(sent)}


def packed():
    call = channel.unary_unary("/echo.Echo/Unary")
    sent = b"a" * 100_000
    return {"same": call(sent, timeout=MAX_S, compression=grpc.Compression.Gzip) == sent}


def server_stream():
    got = [int(one) for one in channel.unary_stream("/echo.Echo/ServerStream")(b"1000", timeout=MAX_S)]
    return {"same": got == list(range(1000))}


def client_stream():
    call = channel.stream_unary("/echo.Echo/ClientStream")
    return {"response": call((b"x" * 1000 for _ in range(1000)), timeout=MAX_S).decode()}


def bidi():
    """Sends each message after the echo of the previous one."""
    import queue

    waiting = queue.Queue()
    responses = channel.stream_stream("/echo.Echo/Bidi")(iter(waiting.get, None), timeout=MAX_S)
    got = []
    for text in ("one", "two", "three"):
        waiting.put(text.encode())
        got.append(next(responses).decode())
    waiting.put(None)
    return {"got": got, "rest": len(list(responses)), "code": responses.code().value[0]}


def statuses():
    found = []
    for code in range(1, 17):
        try:
            method("Status")(json.dumps([code, "no: %d, für 100 %% \u20ac" % code]).encode(), timeout=MAX_S)
            found.append({"code": 0})
        except grpc.RpcError as error:
            found.append(failure(error))
    return found


def deadline():
    try:
        method("Late")(b"", timeout=0.3)
        code = 0
    except grpc.RpcError as error:
        code = error.code().value[0]
    return {"code": code, "events": until_logged("late: gone")}


def cancel():
    responses = channel.unary_stream("/echo.Echo/Endless")(b"", timeout=MAX_S)
    first = [int(next(responses)), int(next(responses))]
    responses.cancel()
    return {"first": first, "events": until_logged("endless: gone")}


def parallel():
    call = method("Unary")
    with futures.ThreadPoolExecutor(max_workers=32) as pool:
        sent = [b"call %d" % number for number in range(500)]
        got = list(pool.map(lambda one: call(one, timeout=MAX_S), sent))
    return {"odd": [(asked.decode(), str(response)) for asked, response in zip(sent, got) if asked != response]}


def refusals():
    return {
        "no such method": told("echo.Echo", "Missing"),
        "no route": told("other.Other"),
        "no key": told("closed.Closed"),
        "no upstream": told("down.Down"),
        "maintenance": told("busy.Busy"),
    }


print(json.dumps(globals()[kind]()))
