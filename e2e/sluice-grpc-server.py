"""A gRPC server whose messages are plain bytes. Prints its port, and serves until a signal.

Arguments: none for plain TCP, or a certificate and its key.
"""

import json
import sys
import threading
import time
from concurrent import futures

import grpc

events = []


def note(what):
    events.append(what)


def unary(request, context):
    seen = dict(context.invocation_metadata())
    context.send_initial_metadata((("x-initial", "one"), ("x-initial-bin", b"\x00\xff")))
    context.set_trailing_metadata((("x-trailing", seen.get("x-asked", "")), ("x-trailing-bin", seen.get("x-asked-bin", b""))))
    return request


def status(request, context):
    code, details = json.loads(request)
    wanted = next(one for one in grpc.StatusCode if one.value[0] == code)
    context.set_trailing_metadata((("x-reason", "asked for"),))
    context.abort(wanted, details)


def server_stream(request, context):
    for number in range(int(request)):
        yield b"%d" % number


def client_stream(requests, context):
    count = size = 0
    for request in requests:
        count += 1
        size += len(request)
    return b"%d %d" % (count, size)


def bidi(requests, context):
    for request in requests:
        yield request[::-1]


def late(request, context):
    """Sends nothing until its client disconnects."""
    remaining = context.time_remaining()
    gone = threading.Event()
    context.add_callback(gone.set)
    note("late: %s" % ("no deadline" if remaining is None or remaining > 1e6 else "deadline"))
    gone.wait(20)
    note("late: gone")
    return b""


def endless(request, context):
    """Sends until its client disconnects."""
    context.add_callback(lambda: note("endless: gone"))
    number = 0
    while context.is_active():
        yield b"%d" % number
        number += 1
        time.sleep(0.005)


def log(request, context):
    return json.dumps(events).encode()


handlers = {
    "Unary": grpc.unary_unary_rpc_method_handler(unary),
    "Status": grpc.unary_unary_rpc_method_handler(status),
    "ServerStream": grpc.unary_stream_rpc_method_handler(server_stream),
    "ClientStream": grpc.stream_unary_rpc_method_handler(client_stream),
    "Bidi": grpc.stream_stream_rpc_method_handler(bidi),
    "Late": grpc.unary_unary_rpc_method_handler(late),
    "Endless": grpc.unary_stream_rpc_method_handler(endless),
    "Log": grpc.unary_unary_rpc_method_handler(log),
}
server = grpc.server(
    futures.ThreadPoolExecutor(max_workers=64),
    options=(("grpc.max_receive_message_length", 16 << 20),),
)
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("echo.Echo", handlers),))
if len(sys.argv) == 3:
    with open(sys.argv[1], "rb") as certificate, open(sys.argv[2], "rb") as key:
        credentials = grpc.ssl_server_credentials(((key.read(), certificate.read()),))
    port = server.add_secure_port("127.0.0.1:0", credentials)
else:
    port = server.add_insecure_port("127.0.0.1:0")
server.start()
print("port %d" % port, flush=True)
server.wait_for_termination()
