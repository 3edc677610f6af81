# What Koboshi says to people, in English. Same ids and variables as ja.ftl; a test compares them.
# Style: what failed, where (this machine, the gateway, the provider), one thing to do. Plain and short.

## Kinds of fault, and where a finer reason needs other advice: kind-<kind>-<sub>

kind-connection-failed =
    .message = Could not connect to the AI provider. The request did not leave this machine's network, or it was cut off on the way.
    .suggestion = Check the network, the VPN and the proxy of this machine, then send the request again.
kind-connection-failed-dns =
    .message = Could not connect to the AI provider: the name of its server could not be resolved (DNS).
    .suggestion = Check that this machine is online, then the VPN, the proxy setting and the spelling of base_url.
kind-connection-failed-unreachable =
    .message = Could not connect to the AI provider: there is no route from this machine to its server.
    .suggestion = Check the network, the VPN and the firewall of this machine, and the address and port in base_url.
kind-connection-failed-reset =
    .message = The connection to the AI provider was reset before any answer came.
    .suggestion = Send the request again. If it keeps happening, check the proxy, VPN or firewall between this machine and the provider.
kind-connection-failed-handshake =
    .message = Could not connect to the AI provider: the encrypted connection (TLS) could not be set up.
    .suggestion = Check that base_url has the right scheme (https or http) and port, and whether a proxy or firewall on the way interferes.
kind-connection-failed-certificate =
    .message = Could not connect to the AI provider: its certificate is not trusted on this machine.
    .suggestion = Retrying will not help. If a proxy inspects the traffic, add your company's CA certificate. Also check the clock of this machine and the host in base_url.
kind-connection-failed-proxy =
    .message = Could not connect to the AI provider: a proxy on the way stopped the connection.
    .suggestion = Check the proxy's address and sign-in in the proxy setting (HTTPS_PROXY), or exclude the provider's host from it.
kind-timeout =
    .message = The AI provider did not answer within the time limit.
    .suggestion = Send the request again. If it keeps happening, use a faster model or raise the timeout in the configuration.
kind-timeout-connect =
    .message = The connection to the AI provider was not established within the connect timeout.
    .suggestion = Check the network, the VPN and the firewall of this machine. A longer connect timeout helps only on a very slow network.
kind-timeout-first-content =
    .message = The AI provider accepted the request but sent nothing within the first-content timeout.
    .suggestion = Send the request again or use another model. For long prompts and reasoning models, raise the first-content timeout (timeouts.first_token) in the configuration.
kind-timeout-idle =
    .message = The AI provider started to answer, then sent nothing for longer than the idle timeout.
    .suggestion = Send the request again. If the model thinks for a long time between words, raise the idle timeout (timeouts.idle) in the configuration.
kind-timeout-total =
    .message = The answer was not complete within the timeout of the whole request.
    .suggestion = Ask for less at once, or raise the timeout of the whole request (timeouts.total, serve.deadline) in the configuration.
kind-timeout-unary =
    .message = The AI provider did not begin to answer within the timeout for answers without streaming (timeouts.unary).
    .suggestion = Ask for a stream or for less at once, or raise timeouts.unary of the provider in the configuration.
kind-timeout-upstream =
    .message = The AI provider's side gave up waiting: its server, or a proxy or CDN in front of it, stopped the request.
    .suggestion = Send the request again. If it keeps happening, ask for a stream or for less at once. A longer timeout on this machine does not help.
kind-timeout-deadline =
    .message = The deadline that the client set for this request passed before the answer was complete.
    .suggestion = Send the request again with a longer x-koboshi-deadline, or without one.
kind-unavailable =
    .message = The AI service is temporarily unavailable. The provider, or a gateway in front of it, is down or restarting.
    .suggestion = Try again in a moment. If the problem persists, contact your system administrator.
kind-unavailable-loading =
    .message = The AI service is temporarily unavailable: the model is still being loaded.
    .suggestion = Wait until the model is loaded, usually a few minutes, then send the request again.
kind-unavailable-locked =
    .message = Another request of this conversation is still running.
    .suggestion = Wait until it has finished, or stop it, then send this message again.
kind-unavailable-stopping =
    .message = The gateway is being stopped or restarted, so the answer could not be completed.
    .suggestion = Send the request again in a moment.
kind-unavailable-resources =
    .message = The AI service is temporarily unavailable: the gateway's machine is out of file descriptors, network ports or memory, so it could not connect to the provider.
    .suggestion = Try again in a moment. If it keeps happening, raise the gateway's limit of open files (ulimit -n, LimitNOFILE in its systemd unit) or free ports and memory on its machine.
kind-connection-refused =
    .message = The connection to the AI provider was refused. The port is wrong or the service is not running.
    .suggestion = Check the host and port in base_url. If it is your own server, start it.
kind-connection-closed =
    .message = The connection was closed before the answer was complete.
    .suggestion = Send the request again. If a part of the answer has arrived, do not use it as if it were complete.
kind-unauthorized =
    .message = The AI provider did not accept the API key. It is missing, wrong or revoked.
    .suggestion = Set a valid API key for this provider, then send the request again. Waiting will not help.
kind-token-expired =
    .message = The sign-in for the AI provider has expired.
    .suggestion = Sign in again or refresh the access token, then send the request again.
kind-token-expired-token =
    .message = The gateway could not get an access token for the AI provider.
    .suggestion = The cause is in the log of the gateway: its token_command or credentials_file failed. The operator of the gateway must fix it.
kind-permission-denied =
    .message = The API key is valid, but the AI provider does not allow this use of it.
    .suggestion = Ask the administrator of the provider account for access, or use an API key or a model that has it.
kind-permission-denied-region =
    .message = The AI provider does not allow use from this country or region.
    .suggestion = Use a provider or an endpoint that serves your region. Waiting will not help.
kind-permission-denied-blocked =
    .message = A firewall or CDN in front of the AI provider blocked the request. The API itself did not answer, so this says nothing about the API key.
    .suggestion = Try from another network, or without the VPN or proxy, and check that base_url is the address of an API. If it keeps happening, show the provider the request ID on the page (with Cloudflare: the Ray ID).
kind-permission-denied-model =
    .message = This account may not use this model.
    .suggestion = Choose another model, or ask the administrator of the provider account to enable this one.
kind-rate-limited =
    .message = Too many requests or tokens in a short time: the AI provider's rate limit is reached.
    .suggestion = Please wait a while and try again. No settings need to change: the limit resets by itself.
kind-rate-limited-concurrency =
    .message = Too many requests are running at the same time for this account.
    .suggestion = Please wait until some of them have finished and try again, or run fewer agents at once.
kind-rate-limited-operator =
    .message = The gateway's own limit of requests at the same time is reached (gate.max_concurrency).
    .suggestion = Please wait until some of them have finished and try again.
kind-quota-exceeded =
    .message = The quota of this account is used up.
    .suggestion = Wait until the quota resets, or use another account or provider until then.
kind-quota-exceeded-window =
    .message = The quota of this account for the current hours or week is used up.
    .suggestion = Wait until the quota resets, or use another model, account or provider until then. Attempts before then will fail.
kind-quota-exceeded-day =
    .message = The quota of this account for today is used up.
    .suggestion = Wait until the provider's day ends (its time zone may differ from yours), or use another account or provider until then.
kind-quota-exceeded-month =
    .message = The quota of this account for this month is used up.
    .suggestion = Raise the monthly limit with the provider, or use another account or provider until the month ends.
kind-quota-exceeded-plan =
    .message = The plan of this account does not include this use.
    .suggestion = Choose a model that the plan includes, or change the plan. Waiting will not help.
kind-quota-exceeded-billing =
    .message = The account has no credit left, or its spending limit is reached.
    .suggestion = Add credit, pay the open bill or raise the spending limit with the provider. Waiting will not help.
model-quota-exceeded =
    .message = The quota of this account for this model is used up.
    .suggestion = Use another model, account or provider, or wait until the quota resets.
model-quota-exceeded-window =
    .message = The quota of this account for this model, for the current hours or week, is used up.
    .suggestion = Use another model, account or provider, or wait until the quota resets. Attempts with this model before then will fail.
model-quota-exceeded-day =
    .message = The quota of this account for this model is used up for today.
    .suggestion = Use another model, account or provider, or wait until the provider's day ends (its time zone may differ from yours).
model-quota-exceeded-month =
    .message = The quota of this account for this model is used up for this month.
    .suggestion = Use another model, account or provider until the month ends, or raise the monthly limit with the provider.
kind-context-build-failed =
    .message = The context for the request could not be built.
    .suggestion = Nothing was sent to the provider. Contact the operator of the gateway with the code of this message.
kind-context-too-large =
    .message = The conversation is longer than the model can read.
    .suggestion = Shorten the question or start the conversation over. A model with a larger context window also helps.
kind-template-not-found =
    .message = The prompt template was not found.
    .suggestion = Check the template's name in the configuration. Nothing was sent to the provider.
kind-invalid-request =
    .message = The AI provider rejected the request because something in it is wrong.
    .suggestion = Correct the request. The same request will fail again.
kind-invalid-request-capability =
    .message = This model cannot do what the request asks for.
    .suggestion = Choose a model that supports it (images, tools, structured output and so on), or leave that part out.
kind-invalid-request-path =
    .message = The URL of the request does not exist at the provider.
    .suggestion = Check base_url and its path. A missing or doubled /v1 is a common cause.
kind-invalid-request-output-limit =
    .message = The request asks for more output than this model can write.
    .suggestion = Lower max_tokens, then send the request again.
kind-model-not-found =
    .message = The model was not found: its name is wrong, it was retired, or this account may not use it.
    .suggestion = Check the spelling of the model's name, or choose one from the provider's current list.
kind-invalid-message =
    .message = A message of the session could not be read.
    .suggestion = Correct the form of the message in the client. The same message will fail again.
kind-message-too-large =
    .message = The request is larger than the receiver accepts.
    .suggestion = Send smaller or fewer files or images, then try again.
kind-response-invalid =
    .message = The AI model answered, but the answer cannot be used.
    .suggestion = Send the request again. If it keeps happening, use another model.
kind-response-invalid-empty =
    .message = The AI model's answer was empty.
    .suggestion = Send the request again. If it keeps happening, put the question differently or use another model.
kind-response-invalid-tool-call =
    .message = The AI model's answer contains a tool call that cannot be read. The tool was not run.
    .suggestion = Send the request again. If it keeps happening, use another model or simplify the tool's parameters.
kind-response-invalid-output-limit =
    .message = The AI model reached its output limit before the answer was complete.
    .suggestion = Raise max_tokens, or ask for a shorter answer.
kind-response-invalid-not-api =
    .message = A web page came back instead of an API answer. It may come from a proxy, from a sign-in page of the network, or from a web site at base_url.
    .suggestion = Check base_url. If the network asks for a sign-in (hotel, company), sign in with a browser first. Sending the same again does not help.
kind-content-filtered =
    .message = The content filter blocked the request or the answer.
    .suggestion = Change the wording of the request. The same request will be blocked again.
kind-overloaded =
    .message = The AI model is overloaded: the provider lacks capacity right now.
    .suggestion = Try again in a moment, or use another model.
kind-tool-arguments-invalid =
    .message = The AI model wrote a tool call whose arguments cannot be read. The tool was not run.
    .suggestion = Let the model correct the call. If it keeps happening, use another model or simplify the tool's parameters.
kind-agent-error =
    .message = The agent stopped because of an error of its own.
    .suggestion = Read the last lines of the agent's log, then start it again.
kind-agent-error-turns =
    .message = The agent reached its turn limit before the task was done.
    .suggestion = Give it a smaller task, or raise its turn limit, then start it again.
kind-tool-failed =
    .message = A tool that the agent called failed.
    .suggestion = Read what the tool reported and fix the cause before calling it again.
kind-tool-loop =
    .message = The agent kept repeating a tool call without making progress, so it was stopped.
    .suggestion = Tell the agent in your next message what to do differently, or fix the cause of the tool's error.
kind-call-depth-exceeded =
    .message = The limit of tool calls for one message was exceeded.
    .suggestion = Send your next message to continue: the count starts again with it. Smaller tasks help.
kind-spawn-failed =
    .message = The agent could not be started on this machine.
    .suggestion = Check that the command exists, that it may be executed, and that its working directory exists.
kind-spawn-failed-command =
    .message = The run ended because a command was not found (exit code 127).
    .suggestion = Install the command that is named below, or add its directory to PATH.
kind-process-failed =
    .message = The agent process ended with a failure.
    .suggestion = Read the last lines of its log, fix what they show, then start it again.
kind-process-failed-memory =
    .message = A process got no more memory and ended.
    .suggestion = Give the program less data at once, run fewer programs beside it, or give this machine or container more memory.
kind-process-failed-signal =
    .message = The agent process was ended by a signal from outside.
    .suggestion = Find out who ended it: a person, the system or a container limit. If memory ran out, `journalctl -k | grep -i oom` says so. Then start it again.
kind-process-failed-time-limit =
    .message = The run was ended by a time limit (exit code 124, as of the timeout command).
    .suggestion = Give it a smaller task, or raise the time limit, then start it again.
kind-process-failed-crash =
    .message = The agent's process crashed by itself: no other process ended it.
    .suggestion = Look at the last lines of its log and report the crash to the maker of the agent. An update of the agent may help.
kind-process-failed-turns =
    .message = The agent process ended because it reached its turn limit.
    .suggestion = Give it a smaller task, or raise its turn limit, then start it again.
kind-cooling-down =
    .message = This target is in cooldown after earlier failures. No requests are sent to it until the cooldown ends.
    .suggestion = Nothing needs to be done: the target is used again when the cooldown ends. Another target can be used until then.
kind-cooling-down-operator =
    .message = An operator has taken this target out of use.
    .suggestion = Ask the operator of this gateway, or use another model.
kind-parked =
    .message = This target is stopped. It cannot be used until someone resumes it.
    .suggestion = The operator of the gateway checks the reason with koboshi status, fixes the cause, then resumes it: koboshi resume KEY (status prints the key).
kind-internal =
    .message = An internal error occurred at the provider, or in Koboshi.
    .suggestion = Try again in a moment. If the problem persists, look at the status page of the provider, or contact the operator of the gateway with the request id.
kind-conversation-not-found =
    .message = The conversation was not found.
    .suggestion = Start a new conversation. The old one was deleted or belongs to another server.
kind-message-save-failed =
    .message = The message could not be saved.
    .suggestion = Keep a copy of your text and send it again. If it keeps happening, check the free disk space.

## What a tool reported

tool-font =
    .message = A font that the tool needs is not installed.
    .suggestion = Install the font, or tell the agent to use an installed one.
tool-missing-module =
    .message = A library that the tool needs is not installed.
    .suggestion = Install the library in the environment the tool runs in.
tool-missing-command =
    .message = A program that the tool needs is not installed or not in PATH.
    .suggestion = Install the program, or add its directory to PATH.
tool-version-conflict =
    .message = The libraries that are asked for need versions that exclude each other, so they cannot be installed together.
    .suggestion = Find the versions that conflict and change one of them. Running the same command again will not help.
tool-permission =
    .message = The tool lacks the permission to access a file or a resource.
    .suggestion = Grant the permission, or tell the agent to work somewhere else.
tool-resource =
    .message = The tool ran out of memory, disk space or another resource.
    .suggestion = Free some of it, or give the agent a smaller piece of work.
tool-plotting =
    .message = The tool could not draw the chart.
    .suggestion = Check the plotting library and its output setting (writing to a file needs no display), or ask for a simpler chart.
tool-file-io =
    .message = The tool could not read or write a file.
    .suggestion = Check that the path exists and is spelled correctly.
tool-network =
    .message = The tool could not connect to the server or network that it needs.
    .suggestion = Check that the server is running and that its address is right, then the network and proxy settings where the tool runs.
tool-timeout =
    .message = The tool did not finish within its timeout.
    .suggestion = Give it a smaller piece of work, or raise the timeout of the tool.
tool-syntax =
    .message = The code or command that the tool was given has a syntax error.
    .suggestion = Let the agent correct the place that the tool names.
tool-type-or-value =
    .message = The code that the tool ran failed on a wrong type or value.
    .suggestion = Let the agent check the data at the place that the tool names.
tool-invalid-arguments =
    .message = The tool was called with arguments that it does not accept.
    .suggestion = Let the agent compare the call with the tool's parameters.
tool-not-found-in-file =
    .message = The text that the tool was to change is not in the file.
    .suggestion = Let the agent read the file again before it edits it.
tool-auth =
    .message = The tool could not authenticate.
    .suggestion = Check the API key or sign-in that the tool uses, and renew it if needed. Calling the tool again as it is will not help.
tool-rate-limit =
    .message = The service that the tool uses limits how often it may be called.
    .suggestion = Wait a while before calling the tool again.
tool-tool-missing =
    .message = The agent called a tool that does not exist here.
    .suggestion = Connect the tool, or tell the agent which tools it has.
tool-test-failure =
    .message = The tests ran, and some of them failed.
    .suggestion = The tool itself works. Let the agent read the failed tests and correct the code.
tool-other =
    .message = The tool reported an error.
    .suggestion = Read what the tool reported and fix the cause before calling it again.

## Broken JSON in a tool call: to the user, and to the model

json-retry-user = This action was not carried out correctly.
json-exhausted-user = The task could not be carried out correctly.
json-retry-model =
    A JSON syntax error occurred. Please correct the JSON below.
    Error: { $error }
    Invalid JSON: { $json }

    Please send the functionCall again in correct JSON form.
json-exhausted-model =
    The JSON syntax error could not be resolved. The task cannot be carried out correctly.
    Error: { $error }
    Invalid JSON: { $json }

json-near = The mistake is near here: { $near }

json-what-schema = The arguments do not satisfy the tool's schema.
json-what-not-an-object = The arguments of a call must be one JSON object; these are not.
json-what-duplicate-key = One key appears twice in the arguments, and it is not clear which value is meant.
json-what-several-objects = One call takes one JSON object, but several were sent.
json-what-other-tool = These arguments name a different tool from the one that was called.
json-what-empty = The call has no arguments.
json-what-too-large = The arguments are larger than allowed.
json-refused-model =
    { $what } The call was not carried out.
    Error: { $error }
    Arguments: { $json }

    Please correct the arguments and send the functionCall again.
json-refused-end-model =
    { $what } This could not be resolved, and the task cannot be carried out correctly.
    Error: { $error }
    Arguments: { $json }
json-form = The tool takes arguments of this form: { $form }

json-cut-end-model =
    The output limit ended this call in its middle again, so it was not carried out. The task cannot be carried out in this way.
    Error: { $error }
json-cut-model =
    The output limit ended this call in its middle, so it was not carried out.
    Error: { $error }

    Send it again in smaller pieces, or with less content. Sending the same again would be cut again.
json-call = Call { $id }, tool { $tool }.

## When another try is worth it, and why an operator decided

try-again-in = Please try again in { $length }.
try-again-after = Please try again after { $time }.
asks-again-in = The end is not known. The gateway asks the provider again in { $length }.
asks-again-after = The end is not known. The gateway asks the provider again after { $time }.
provider-said = { $message } The provider said: { $said }
operator-reason = Reason: { $reason }.
all-failed = All { $count } targets for this model failed or are out of use: { $targets }.
lacks-parts = Not supported: { $parts }.
answer-differs = Another target was asked to continue and answered differently. The answer ends here, because two different answers are not joined.
bare-quota-exceeded =
    .message = The AI provider answered 402 (payment required) and did not say why.
    .suggestion = Check the balance and the spending limit of the account with the provider.
bare-unauthorized =
    .message = The AI provider answered 401 (unauthorized) and did not say why.
    .suggestion = Check the API key that is used for this provider.
bare-permission-denied =
    .message = The AI provider answered 403 (forbidden) and did not say why.
    .suggestion = Check with the provider what the account and its API key may use.
gateway-bare-unauthorized =
    .message = The AI provider answered 401 (unauthorized) to this gateway and did not say why.
    .suggestion = The operator of this gateway checks its API key for this provider. Your own key was not sent there.
gateway-bare-permission-denied =
    .message = The AI provider answered 403 (forbidden) to this gateway and did not say why.
    .suggestion = The operator of this gateway checks with the provider what its account and API key may use. Your own key was not sent there.

## Answers when nothing else is left

static-unavailable = We are sorry. The service is currently unavailable. Please try again later.
unavailable-long =
    Sorry, the AI assistant is currently unavailable.

    Please try again later.
    If the problem persists, contact your system administrator.
unavailable-contact =
    Sorry, the AI assistant is currently unavailable.

    Please contact your system administrator.
static-notice = The AI service is temporarily unavailable, so a prepared answer is shown.

## Labels of an explanation

label-what = What failed
label-whose = Cause
label-do = What to do
label-wait = Wait until
label-affects = Also affects
label-sure = How sure
label-said = Error text
label-retry = Try again?
label-seen = Found in line { $line }, by rule { $rule }
label-seen-from-end = Found in line { $line } from the end, by rule { $rule }
log-is-empty = The log is empty. Start it again and keep its output, both stdout and stderr, in a file.
label-seen-exit-code = No line says why: only the exit code was available (rule { $rule })
label-seen-no-text = There is no text in the body that could say more (rule { $rule })

origin-provider = the AI provider
origin-transport = the network between this machine and the AI provider
origin-tool = the tool, or a service that it uses
origin-process = the agent process
origin-client = the request itself
origin-koboshi = Koboshi

cause-rate-limited = the account: it sends too many requests or tokens in a short time
cause-quota-exceeded = the account: its quota is used up
cause-quota-exceeded-billing = the account: its balance is used up, or its spending limit is reached
cause-quota-exceeded-plan = the account: its plan does not include this
cause-quota-exceeded-model = the account: its quota for this model is used up
cause-bare = not stated: the AI provider answered with a status alone
cause-unauthorized = the API key
cause-token-expired = the sign-in, which has expired
cause-permission-denied = the account: it lacks a permission
cause-permission-denied-blocked = a firewall or CDN in front of the AI provider
cause-content-filtered = the content filter of the AI provider
cause-cooling-down-operator = an operator of the gateway, who has taken the target out of use
cause-model-not-found-own = the configuration of the gateway
cause-connection-refused = the address that is called, or the server there
cause-timeout-first-content = the AI provider: it was slower than the time limit
cause-timeout-idle = the AI provider: it was silent for longer than the time limit
cause-timeout-unary = the AI provider: it was slower than the time limit
cause-timeout-total = the time limit of the whole request, which the answer did not fit into
cause-timeout-deadline = the deadline that the client set, which the answer did not fit into

scope-request = nothing else
scope-key = everything that uses this API key
scope-sign-in = everything that uses this sign-in
scope-account = everything on this account
scope-model = everything that uses this model
scope-provider = everything that uses this provider
scope-network = requests to the same host from this machine; others may not be affected

confidence-low = not sure: only a status or an exit code was available
confidence-low-line = not sure: a line looks like an error, but its kind could not be determined
confidence-medium = fairly sure: recognised by its wording
confidence-medium-form = fairly sure: recognised by the form of the answer, not by its words
confidence-high = sure: stated by a code, a header or an event

retry-yes = Yes, the same request may succeed.
retry-after-wait = Yes, after that time.
retry-after-sign-in = Yes, after signing in again.
retry-later = Not now, but later.
retry-no = No, not until the cause is fixed.
retry-other-yes = Another provider or model may work right now.
retry-other-network = Another provider may work, unless this machine is offline or its network is at fault.
retry-other-no = Another provider would not help.
retry-tool-yes = Yes, the same call may succeed.
retry-tool-no = No, the same call will fail until the cause is fixed.
retry-process-yes = Yes, it can be started again.
retry-process-no = No, it will fail again until the cause is fixed.


step-login = The program asks for a sign-in: start it and enter /login, or set a valid API key for it.
exit-signal = Exit code { $code } stands for the signal { $name }.
exit-signal-kill = Exit code { $code } stands for the signal { $name }. The system sends it too, when memory runs out.
codes-own-key = Where the provider refused a key of the gateway itself, these kinds go out with HTTP 502: { $kinds }. The client would otherwise throw away its own key.
nothing-wrong = No problem was found.
wait-until = { $time } ({ $left } left)
wait-over = The stated wait is over. You can try again now.
wait-not-the-day = The provider states this wait, but the quota of the day may stay used up until the provider's day ends.
wait-not-the-month = The provider states this wait, but the quota of the month may stay used up until the month ends.
wait-then-try = Try again after the stated wait.
wait-meanwhile-model = Until then, use another model, account or provider.
wait-meanwhile-account = Until then, use another account or provider.
wait-stated = The text says { $time }.
wait-assumed = The text names no time zone; { $zone } was assumed.
wait-from-text = Counted from the time in the text: { $time }.
wait-from-file = The text does not say when it was written. Counted from the last change of the file: { $time }.
wait-from-now = The text does not say when it was written. Counted from now.
wait-date-from-text = The date was taken from the time in the text: { $time }.
wait-date-from-file = The text does not say when it was written. The date was taken from the last change of the file: { $time }.
wait-date-from-now = The text does not say when it was written. It was read as the next such time from now.

## Inputs that cannot be read

explain-internal = The AI provider had an internal error while it handled the request.
input-stdin = standard input
input-empty = { $name } is empty: pass the text of a log or an answer
input-binary = { $name } is not text: it is binary data, or in an encoding other than UTF-8. Convert Shift_JIS first: iconv -f CP932 -t UTF-8 FILE | koboshi { $command } (for EUC: -f EUC-JP, for JIS: -f ISO-2022-JP)
input-directory = cannot read { $name }: it is a directory
input-missing = cannot read { $name }: there is no such file
input-denied = cannot read { $name }: permission denied
input-unreadable = cannot read { $name }: { $why }
case-written = Written to { $file } as { $id }; it is read as { $got } so far. Keys are masked; names, hosts and numbers are not: look at it before you hand it on.
case-known = Nothing was written: this is already read as { $should }.
case-label = `{ $should }` is no label of { $form }; choose one of: { $names }
case-form-log = a log
case-form-tool = the output of a tool
case-form-answer = a response
case-unwritable = cannot write { $name }: { $why }
case-id-taken = the id `{ $id }` is taken already
case-label-unknown = there is no label `{ $should }`
case-secret = there is something like a key in it: mask it first
case-added-right = { $id } → { $file } (read as it should be)
case-added-wrong = { $id } → { $file } (still read as something else)
cases-added = Filed: { $new }, there already: { $passed }
input-answer-too-long = this answer is too long to be judged as a whole; pass only the part with the error

## What is remembered

status-clear = All targets are available.
status-clear-store = The store has no record of a target that is out of use. What a gateway keeps to itself is shown with: koboshi status --url http://{ $address }
status-clear-stopped = Nothing is recorded as unavailable. No gateway is running, so no request is answered now.
status-clear-silent = Nothing is recorded as unavailable, but no gateway reports to this store now.
status-key-clear = Nothing is recorded against { $key } itself. `koboshi status` shows everything, also what is above or below it.
status-not-there = { $place } does not exist: no gateway and no agent has used this store yet, or its name is misspelt.
status-nothing-known = Nothing has been recorded yet ({ $place } does not exist).
status-store = Read from the store { $place }.
status-remote = Read from the gateway at { $place }. Its store: { $store }.
status-channel = notices: the channel { $channel } does not take them, { $count } wait
status-channel-last = it took the last one at { $time }
status-channel-never = it has not taken any yet
status-channel-lost = { $count } notices were lost
status-channel-next = it is tried again at { $time }
status-trouble = The store cannot be read now, so this is what the gateway itself knows: { $why }
status-configs-differ = The gateways do not run the same config: { $gateways }. Until they do, each decides by its own.
status-gateway-running = The gateway at { $address } reported { $ago } ago.
status-gateway-silent = The gateway at { $address } has not reported since { $time }: it does not run, or it cannot reach the store.
status-gateway-stopped = The gateway at { $address } stopped at { $time }.
status-no-gateway = No gateway has used this store yet.
status-until = until { $time } ({ $left } left)
status-since = since { $time }
status-streak = failures in a row: { $count }
status-openings = opened { $count } times in a row
status-node = seen by { $node }
status-probing = the next requests test whether it works again
status-open-probes = where no other target is left, single requests still go through to test it
status-asks-again = the provider is asked again then, even if it states a longer wait
status-due = the next request tests whether it works again
status-due-run = the next run (or request) tests whether it works again; a run that is shorter than cooldown.min_run does not count
status-resume = Remove the cause, then resume it with: { $command }
status-release = It stays out of use until it is resumed with: { $command }
status-unreadable = { $slot } cannot be read and was left as it is: { $why }
state-parked = parked
state-cooling = in cooldown
state-absent = no such model
state-held = limit reached
state-forced-open = breaker forced open
state-open = breaker open
state-probing = breaker probing
state-due = cooldown over
state-disabled = breaker disabled
state-forced-closed = breaker forced closed
breaker-consecutive = { $failed } failures in a row
breaker-failure-rate = { $failed } of { $calls } requests failed
breaker-slow-rate = { $failed } of { $calls } requests were slow
breaker-warned = one failure, after another gateway's breaker had opened
breaker-wait-over = the open time is over
breaker-probe-failed = a test request failed
breaker-probes-succeeded = test requests succeeded
breaker-forced = set by an operator
breaker-released = released by an operator
breaker-restored = open since before the restart
limit-requests = the limit of requests
limit-tokens = the limit of tokens
limit-input-tokens = the limit of input tokens
limit-output-tokens = the limit of output tokens
limit-concurrency = the limit of simultaneous requests
limit-quota = the quota of a long window
limit-operator = set by an operator
resume-done = { $key } is available again.
resume-done-partly = { $key } was resumed.
resume-still-held = Not everything is available yet: { $key } still stops requests. To resume it too: { $command }
resume-nothing = Nothing was held for { $key }: it is in no cooldown, not parked, not held by a limit, and its breaker is not open.
resume-looked-in = Looked in the store { $place }. For a gateway with another store, add --store PLACE or --url ADDRESS.
resume-asked = Asked the gateway at { $place }.
resume-all-nothing = Nothing is in cooldown or parked and no breaker is open, so there was nothing to resume.
resume-above = { $key } keeps it from being used: { $command }
cool-done = { $key } is in cooldown until { $until }.
config-left-out = The config has mistakes, so it is left out, and only the built-in rules, models and codes are used. Its mistakes:
config-unusable = the config cannot be used (look at all of it with `{ $check }`, or name another file with --config):
cool-past = { $time } is in the past. To end a cooldown: { $command }
key-unknown = No target has the key { $key }.
key-unknown-agent = No agent has the key { $key }: the config names no such agent and project, and the store has no record of them.
key-unchanged = Nothing was changed.
key-near = Did you mean one of these? { $near }
key-force-agent = If it is right all the same, add --force.
key-force = If it is right all the same, for example for a model that no client has asked for yet, add --force.
key-unknowable = It cannot be checked whether a target has the key { $key }: no config was found, and no gateway has used this store. Name a config with --config or a gateway with --url, or add --force.
journal-unknown-kind = No error has the name `{ $kind }`, and no entry is of this kind. Known are: { $known }
journal-empty = No entry matches.
journal-pruned = Entries deleted: { $count }
journal-fault = fault
journal-remedy = remedy
journal-breaker = breaker
journal-gate = gate
journal-cooldown = cooldown
journal-lease = lease
journal-store = store
journal-operator = operator
journal-run = run
journal-budget = budget
time-no-instant = `{ $text }` cannot be read as a time with its zone: write it like 2026-11-15T12:00:00Z, 2026-11-15T12:00:00+09:00 or 2026-11-15T12:00:00[Asia/Tokyo]
time-no-length = `{ $text }` is not a length of time: write it like 30s, 45m, 2h or 1d
time-too-long = { $text } is too long: at most 365 days. Give the end with --until instead
time-zero-length = `{ $text }` is no time at all: it must be longer than zero
time-neither = `{ $text }` is neither a length of time such as 2h nor a time with its zone such as 2026-11-15T12:00:00Z
key-of-one-process = { $key } is about the network of one machine: its process alone keeps it, and it cannot be set from here
store-memory = memory (a restart forgets it)
store-redis = Redis at { $address }

## One screen of a terminal

top-no-terminal = `koboshi top` draws on a terminal, and standard input or output is none. For one reading use `koboshi status` or `koboshi top --format json`.
top-reading = Reading…
top-up = up { $length }
top-ago = { $length } ago
top-until = until { $time }
top-available = available
top-no-record = nothing recorded
top-requests = { $rate } requests/s
top-faults = { $rate } faults/s
top-open = { $count } open
top-survived = { $survived } falls survived, { $seen } errors since start
top-store-alone = requests are counted by a gateway alone: --url
top-old = As of { $time }: { $why }
top-dead = No target is left for { $routes }
top-down = Out of use: { $count }. Every route still has a target.
top-clear-store = The store has no record of anything that is out of use.
top-targets = Targets: { $down } of { $all } out of use
top-last-faults = Last faults
top-agents = Agents: { $running } of { $all } running
top-no-targets = No target is known yet: no gateway has run with this store, or its config has no route.
top-no-faults = No fault was recorded.
top-resume = Resume it with: { $command }
top-keys = q quit   ↑ ↓ choose   tab next list

## Reason words of a supervisor's log

reason-quota = quota used up
reason-billing = balance used up or spending limit reached
reason-rate-limit = too many requests or tokens in a short time
reason-overloaded = provider overloaded or unavailable
reason-auth = API key, sign-in or permission not accepted
reason-status-401 = the provider answered 401 and did not say why
reason-status-402 = the provider answered 402 and did not say why
reason-status-403 = the provider answered 403 and did not say why
reason-key = API key not accepted
reason-sign-in = sign-in expired
reason-permission = permission missing
reason-region = not available in this country or region
reason-blocked = blocked by a firewall or CDN in front of the provider
reason-model = this account may not use the model
reason-plan = not included in the plan of the account
reason-context = conversation too long
reason-network = network problem
reason-error = another error
reason-starts = started too often within a short time
reason-operator = set by an operator
reason-none = no failure

## The guard: what repeats, what to do, what to ask. Notes are for the model

guard-what-similar-errors = The same error occurred { $count } times in a row ({ $tools }).
guard-what-alternating-errors = The same errors alternate; one of them occurred { $count } times ({ $tools }).
guard-what-any-errors = { $count } attempts in a row failed, each with a different error ({ $tools }).
guard-what-same-call = The same call returned the same result { $count } times ({ $tools }).
guard-what-cycle = The same few calls were repeated { $count } times with the same results ({ $tools }).
guard-what-stagnation = { $count } attempts with different arguments all returned nothing useful ({ $tools }).
guard-what-depth = The limit of { $limit } tool calls for one message was exceeded: { $calls } calls in { $responses } responses.
guard-what-width = One response made { $count } tool calls at the same time; { $limit } are allowed.
guard-label-example = An example of what came back:
guard-label-steps = What you can do:
guard-step-use-installed = Have the agent list what is installed, and let it use one of those.
guard-step-name-versions = Tell the agent which version must stay, and let it change the other one.
guard-step-other-place = Name a place that the agent may use: a folder, a repository, a project.
guard-step-free-room = Check the free memory and disk space, and end processes that earlier attempts left running.
guard-step-figure-to-file = Ask for the figure as a file; that needs no display.
guard-step-list-first = Have the agent list the folder before it opens a file.
guard-step-check-service = Check from the machine where the tool runs that the service answers.
guard-step-smaller = Ask for a smaller piece of the work.
guard-step-show-place = Have the agent show the lines around the place before it writes again.
guard-step-print-values = Have the agent print the values and types it works with.
guard-step-give-example = Give the agent one example of a correct call.
guard-step-read-again = Have the agent read the file again and copy the text to be replaced from it.
guard-step-sign-in = Sign in again or renew the API key yourself, outside this conversation.
guard-step-wait-then-go-on = Wait a few minutes, then tell the agent to continue.
guard-step-name-tools = Tell the agent which tools it has.
guard-step-one-test = Have the agent work on one failing test at a time.
guard-step-other-words = Suggest other words to search for, or another place to search.
guard-step-say-what-is-known = Have the agent say what it knows so far and what is missing.
guard-step-go-on = If the work was going well, tell the agent to continue; the count then starts again from zero.
guard-step-raise-limit = If such long turns are normal here, raise the limit in the configuration.
guard-step-other-way = Ask for another way to reach the goal.
guard-question-fix-or-other-way = Do you want to fix the cause first, or should the agent try another way?
guard-question-what-next = What should the agent do differently?
guard-question-go-on = Should the agent continue?
guard-note-errors = { $tools } failed { $count } times with the same message: { $pattern }. Repeating the call will not make it succeed. Find the cause first, or choose another way. After the next failure of this kind, the same call is refused.
guard-note-repeats = Calls of { $tools } returned the same results { $count } times. Repeating them brings nothing new. Use what is already known, or choose another way. If this continues, the same call is refused.
guard-note-depth = { $calls } tool calls were made for this message, and { $limit } are allowed. Answer now with what is known.
guard-note-errors-only = { $tools } failed { $count } times with the same message: { $pattern }. Repeating the call will not make it succeed. Find the cause first, or choose another way.
guard-note-repeats-only = Calls of { $tools } returned the same results { $count } times. Repeating them brings nothing new. Use what is already known, or choose another way.
guard-note-depth-only = { $calls } tool calls were made for this message, and { $limit } are usually enough. Answer with what is known, unless something essential is missing.
guard-note-width = One response called { $count } tools at once, and { $limit } are allowed. Call fewer at a time.
guard-note-width-only = One response called { $count } tools at once, and { $limit } are usually enough. Call fewer at a time.
guard-note-stop = No more tools can be called for this message. Tell the user in a few sentences what was tried, what blocks the work and what is known so far, and ask how to continue.
guard-note-stop-but = Except { $others }, no more tools can be called for this message. Tell the user what was tried, what blocks the work and what is known so far, or use one of these tools to ask for help or to finish.
guard-note-forbids-calls = { $tools } was called { $count } times without progress. The same calls with the same arguments are refused from now on. Use what is already known, choose another way, ask the user, or finish.
guard-note-forbids-tools = { $tools } was called { $count } times without progress, so calls of { $tools } are refused for now. All other tools can be used. Choose another way, ask the user, or finish.
guard-refused-call = This call was refused and did not run: the same call with the same arguments was made before, again and again, with the same result. Do something else: use what is already known, choose another way, ask the user, or finish.
guard-refused-tool = This call was refused and did not run: { $tools } was called again and again without progress. Use another tool, ask the user, or finish.
guard-refused-turn = This call was refused and did not run: no more tools can be called for this message. Answer the user now.
guard-refused-turn-but = This call was refused and did not run: only { $others } can be called for this message now. Use one of these, or answer the user now.
guard-refused-beside = This call did not run, because another call of the same response was refused. Make it again if it is still needed.

## koboshi guard replay

guard-replay-run = { $id } ({ $calls } calls)
guard-replay-note = note
guard-replay-stop = stop
guard-replay-said = after call { $at }, turn { $turn }, { $rule }: { $why }
guard-replay-sum = { $runs } runs, { $calls } calls: notes in { $noted }, stops in { $stopped }
guard-replay-sum-of-one = 1 run, { $calls } calls: notes in { $noted }, stops in { $stopped }
guard-replay-empty = it is empty: there is no recorded run in it
guard-replay-progress = { $runs } runs, { $calls } calls, { $megabytes } MB …
guard-replay-no-json = this is not JSON: { $detail }
guard-replay-no-form = this is no recorded run of a known form: a message list, a Codex rollout, a Claude Code session, or an object with `calls`
guard-replay-no-calls = `calls` cannot be read: { $detail }
guard-replay-no-messages = the messages cannot be read: { $detail }
guard-replay-long-line = this line is longer than 128 MiB
guard-replay-no-text = this line is not UTF-8 text
guard-replay-unreadable = cannot be read further: { $detail }

## koboshi check

check-good = valid
check-one-warning = , 1 warning
check-warnings = , { $count } warnings
check-warning = warning:
check-no-file = no config file, so all defaults apply (looked for { $places })
check-all-defaults = All values are the defaults.
check-differs = What differs from the defaults:
check-default = (default { $value })
check-one-problem = 1 problem
check-problems = { $count } problems
check-not-shown = , { $count } of them not shown
check-described = . The keys are described in docs/config.md.

## koboshi models

models-built-in = built in (models.yaml:{ $line })
models-assumed = assumed
models-unknown = This model is not known: everything is assumed. docs/models.md says how to add it.
models-none-named = The config names no models. Ask for one: koboshi models NAME. Names of these forms are known:

## koboshi init

init-done = { $place } is written.
init-found = Keys found in the environment: { $names }.
init-keyless = Used without a key: { $names }.
init-none = No provider can be used yet, so the file has a demo route that the simulated provider answers.
init-next = Next: check it with `{ $check }`, then start `{ $serve }`.
init-folder = { $place } is a folder: name a file in it, such as { $file }
init-there = { $place } is there already and was left as it is: use --force to overwrite it, or --print to see the new one
init-cannot-write = cannot write { $place }: { $reason }
init-ask-language = Language of the comments, en or ja [{ $default }]:
init-ask-providers = Which providers do you want to use? Numbers or names with commas between them, or `none` [{ $default }]:
init-ask-found = key found
init-ask-keyless = no key needed
init-ask-missing = { $name } is not set
init-ask-none = none
init-ask-unknown = `{ $name }` is not in the list.
init-unknown-provider = `{ $name }` is no provider that init knows: { $known }
init-without-key = Not active yet, because these variables are not set or cannot be used: { $names }. Set them, then remove the `#` signs in the file.

## koboshi import

import-there = { $place } is there already and was left as it is: use --force to overwrite it, or name another file
import-done = { $place } is written. Next: set the variables, check it with `{ $check }`, then start `{ $serve }`.
import-left = not translated:
import-changed = not quite the same:
import-todo = to do:
import-variables = Set these variables before you start it: { $names }

## koboshi repair

repair-too-long = { $name } is too long for the arguments of a call
repair-not-json = { $name } is not JSON: { $why }
repair-not-schema = { $name } is not a usable JSON Schema: { $why }
repair-finish-unknown = --finish { $reason } is not known and changes nothing. Known are: { $known }
repair-changed = { $what } ({ $name }, line { $line }, column { $column }): { $said }
repair-refused = { $what } ({ $name }, line { $line }, column { $column })
repair-refused-label = refused:
repair-detail = Detail: { $reason }

repair-change-outside-dropped = text around the object was left out
repair-change-blank-dropped = white space that JSON does not know was left out
repair-change-comment-dropped = a comment was left out
repair-change-key-quoted = a key was put in quotation marks
repair-change-word-quoted = a word was put in quotation marks
repair-change-quotes-changed = other quotation marks were read as double ones
repair-change-quotes-escaped = quotation marks inside a string were escaped
repair-change-controls-escaped = control characters inside a string were escaped
repair-change-apostrophe-unescaped = an escaped apostrophe was read as an apostrophe
repair-change-backslashes-escaped = backslashes that begin no escape were kept
repair-change-string-form-read = a string in another notation was read
repair-change-strings-joined = strings with a plus between them were joined
repair-change-separator-read = another separator was read as a colon or a comma
repair-change-bracket-read = another bracket was read as a bracket of JSON
repair-change-colon-added = a missing colon was added
repair-change-comma-added = a missing comma was added
repair-change-comma-dropped = a comma too many was left out
repair-change-literal-read = a literal of Python was read
repair-change-tuple-read = a tuple was read as an array
repair-change-number-read = a number in another notation was read
repair-change-duplicate-dropped = a key that came twice with the same value was kept once
repair-change-object-closed = the missing end of an object was added
repair-change-closer-dropped = a closing bracket too many was left out
repair-change-mark-added = a missing mark was added
repair-change-mark-dropped = a mark too many was left out
repair-change-mark-exchanged = a mark was read as a related one
repair-change-string-unwrapped = the arguments were taken out of a string
repair-change-list-unwrapped = the arguments were taken out of a list
repair-change-envelope-unwrapped = the arguments were taken out of an object with name and arguments
repair-change-markup-read = arguments written as tags were read
repair-change-call-read = arguments written as a call were read
repair-change-others-dropped = of several objects, the only one that fits the schema was kept
repair-change-empty-read = an empty text was read as no arguments
repair-change-to-number = a text became a number, as the schema demands
repair-change-to-boolean = a text became true or false, as the schema demands
repair-change-to-text = a number became a text, as the schema demands
repair-change-to-array = a value became a list of one, as the schema demands
repair-change-decoded = a list or an object was taken out of a string
repair-change-enum-case = a value was written in the case that the schema has
repair-change-null-dropped = a null that the schema does not allow was left out

repair-defect-unreadable = this is neither JSON nor another notation that is known
repair-defect-cut = the text ends in the middle
repair-defect-cut-by-limit = the output limit cut the text off
repair-defect-ambiguous = this can be read in more than one way
repair-defect-bad-escape = a backslash cannot be read in one way only
repair-defect-bad-number = a number cannot be read in one way only
repair-defect-missing-value = a value is missing
repair-defect-duplicate-key = a key comes twice with different values
repair-defect-several-objects = several objects follow each other, and one call has one
repair-defect-not-an-object = the arguments are no JSON object
repair-defect-empty = there are no arguments
repair-defect-other-tool = these are the arguments of another tool
repair-defect-schema = the arguments do not fit the schema
repair-defect-too-deep = the arguments are nested too deeply
repair-defect-too-long = the arguments are longer than allowed

## koboshi serve

serve-listens = Koboshi listens on { $place }
serve-listens-everywhere = Koboshi listens on { $place } and on every other address of this machine
serve-label-providers = providers
serve-label-config = config
serve-label-store = store
serve-no-config = none: the defaults and the environment
serve-try = Try it:
serve-try-simulated = Try it (sim/ok is answered by the simulated provider; for a real answer, ask for a model of your provider as PROVIDER/MODEL):

## koboshi run

run-waits = { $key } is in cooldown ({ $reason }). Waiting until { $until }, { $left } left.
run-rests = Not started: { $key } is in cooldown until { $until } ({ $reason }). That is longer than --patience { $patience }. Run it again then (exit status 75).
run-unnamed = This command
run-rests-unnamed = Not started again: { $reason }. The next attempt makes sense at { $until } at the earliest, which is longer than --patience { $patience }. A run without a name is not remembered: with --account NAME or --agent NAME the next run waits by itself (exit status 75).
run-parked-unnamed = Not started again: { $reason }. Remove the cause, then run it again (exit status 69).
run-parked = Not started: { $key } is parked ({ $reason }). Remove the cause, then resume it with: { $command } (exit status 69).
run-rests-again = Not started again: { $key } is in cooldown until { $until } ({ $reason }). That is longer than --patience { $patience }. Run it again then (exit status 75).
run-parked-again = Not started again: { $key } is parked ({ $reason }). Remove the cause, then resume it with: { $command } (exit status 69).
run-gateway-needs = The command asks its provider directly and not the gateway at { $address }: { $variable } is not set.
run-gateway-without-key = The command asks its provider directly: the gateway at { $address } has no key for { $vendor }, and `serve.passthrough` is off.
run-gateway-silent = Nothing answers at { $address }; the command is pointed at it all the same.
run-gateway-wants-keys = The command asks its provider directly: the gateway at { $address } wants a key of its own (`keys`). With one in the environment, point the command at it with --gateway { $address }.
run-gateway-login = The command asks its provider directly with its own login: none of { $variable } is set, and the gateway at { $address } would put its own key in place of that login. `serve.passthrough: true` lets the login through.
run-missing = { $program } was not found: check its name and PATH (exit status 127).
run-refused = { $program } cannot be run: { $why } (exit status 126).
run-next-parked = { $key } is parked now, so the next run does not start either. Remove the cause, then resume it with: { $command }
run-next-rests = { $key } is in cooldown until { $until }, and the next run waits for it. To skip the wait: { $command }
run-again = The command failed ({ $reason }) and is started again.
run-others-first = others start first
run-failed = The command failed ({ $reason }) and is not started again.
run-failed-rests = The command failed ({ $reason }) and is not started again. { $key } is in cooldown until { $until }, and the next run waits for it. To skip the wait: { $command }
run-failed-parked = The command failed ({ $reason }) and is not started again. { $key } is parked: remove the cause, then resume it with: { $command }

## Requests that the gateway refuses by itself: no provider was asked

provider-internal =
    .message = An internal error occurred at the AI provider.
    .suggestion = Try again in a moment. If the problem persists, look at the status page of the provider.
refused-path =
    .message = Koboshi does not serve { $method } { $path }.
    .suggestion = Check base_url and the path. These endpoints are served: { $served }.
refused-path-doubled =
    .message = Koboshi does not serve { $method } { $path }: the version is in the path twice.
    .suggestion = Remove the version from the end of base_url, so that the request goes to { $near }.
refused-chat-off =
    .message = The chat page is not switched on at this gateway.
    .suggestion = Start the gateway with koboshi serve --chat, or set serve.chat in its config, then open /chat/ again.
refused-admin-path =
    .message = The admin API has no endpoint { $method } { $path }.
    .suggestion = GET /koboshi/openapi.json lists the endpoints of the admin API.
refused-method =
    .message = { $path } does not take { $method }.
    .suggestion = Use { $allow } for this path.
refused-deadline =
    .message = The header x-koboshi-deadline is not a length of time.
    .suggestion = Write it like 30s, 1500ms or 30 (seconds), or leave it out.
refused-content-type =
    .message = The request body must be sent as JSON.
    .suggestion = Set the Content-Type header to application/json, then send the request again.
refused-model-path =
    .message = The path names no model.
    .suggestion = Write it like /v1beta/models/MODEL:generateContent.
refused-upgrade =
    .message = This path is for WebSocket connections, and the request is not a WebSocket handshake.
    .suggestion = Connect with a WebSocket client, such as new WebSocket(...) in a browser. The protocol is described in docs/sessions.md.
refused-key-missing =
    .message = This Koboshi gateway needs a key, and the request has none.
    .suggestion = Send one of the gateway's own keys (the section keys of its config) as a bearer token, as x-api-key or as x-goog-api-key. A key of an AI provider is not accepted here.
refused-key-unknown =
    .message = The key of the request is not a key of this Koboshi gateway.
    .suggestion = Use a key that the gateway's operator has registered in the section keys of its config. It is not the key of an AI provider: Koboshi has that one itself.
refused-key-route =
    .message = This key of the gateway may not ask for the model { $model }.
    .suggestion = Ask for a model that this key may use (GET /v1/models lists them), or ask the gateway's operator to add this one to the key's routes.
refused-budget-day =
    .message = The budget of this key for the day ({ $limit }) is spent. The gateway itself refused the request; no provider was asked.
    .suggestion = The budget is renewed at { $until }. The gateway's operator can raise it under keys in the config.
refused-budget-month =
    .message = The budget of this key for the month ({ $limit }) is spent. The gateway itself refused the request; no provider was asked.
    .suggestion = The budget is renewed at { $until }. The gateway's operator can raise it under keys in the config.
refused-rate =
    .message = This key has made the { $rate } requests that it may make in a minute. The gateway itself refused the request; no provider was asked.
    .suggestion = Send the request again in { $seconds } s. The gateway's operator can raise the limit under keys in the config.
refused-admin-key =
    .message = The admin key of this gateway is missing or wrong.
    .suggestion = Send the admin key, whose hash is admin.sha256 in the gateway's config, as a bearer token. Keys of clients and of AI providers are not accepted here.
refused-admin-local =
    .message = No admin key is set, so the admin API can be used only from the gateway's own machine.
    .suggestion = Set admin.sha256 in the gateway's config and send that key as a bearer token, or call from the machine itself.
refused-admin-unset =
    .message = Clients need keys at this gateway, so the admin API needs one too, and none is set.
    .suggestion = Set admin.sha256 in the gateway's config and send that key as a bearer token.
refused-csrf =
    .message = A change from a browser must come from this gateway's own dashboard and carry its token.
    .suggestion = Open /koboshi/ at this gateway again and repeat it there. A program sends the admin key as a bearer token instead.
refused-no-host =
    .message = The program around this gateway does not offer this.
    .suggestion = Start the gateway with koboshi serve or koboshi up.
refused-host-failed =
    .message = This could not be done ({ $why }).
    .suggestion = Try again. If it keeps happening, look at the log of the gateway.
refused-metrics =
    .message = Metrics are given with the admin key. Without it they are given only on the gateway's own machine, and only where the gateway has no keys.
    .suggestion = Send the admin key as a bearer token (its hash is admin.sha256 in the gateway's config), or set serve.public_metrics there.
refused-host-count =
    .message = The request must name exactly one host.
    .suggestion = Send one Host header, and the same host in the address if it stands there too.
refused-content-encoding =
    .message = The request body is compressed ({ $encoding }), and this gateway does not read compressed bodies.
    .suggestion = Send the body uncompressed, without a Content-Encoding header.
refused-stopping =
    .message = The gateway is being stopped or restarted.
    .suggestion = Send the request again in a moment.
refused-memory =
    .message = The gateway is serving too many large requests at the moment.
    .suggestion = Send the request again in a moment. If it keeps happening, raise serve.memory in the gateway's config.
refused-busy =
    .message = Too many large requests are waiting to be read by the gateway.
    .suggestion = Send the request again in a moment. If it keeps happening, send fewer large requests at the same time.
refused-origin =
    .message = Web pages from { $origin } may not call this gateway.
    .suggestion = If this page is yours, add its origin to serve.allowed_origins in the gateway's config.
refused-host =
    .message = This gateway does not answer to the name { $host }.
    .suggestion = Call it as localhost or 127.0.0.1, or add the name to serve.allowed_hosts in the gateway's config.
refused-model =
    .message = This gateway has no route and no provider for the model { $model }.
    .suggestion = Check the spelling, write the name as provider/model, or add a route to the gateway's config. GET /v1/models lists the known names.
refused-model-long =
    .message = The name of the model has more than { $limit } bytes, and no model has such a name.
    .suggestion = Check what the program puts into the model field. GET /v1/models lists the known names.
refused-model-near =
    .message = This gateway has no route and no provider for the model { $model }.
    .suggestion = Did you mean { $near }? Else write the name as provider/model, or add a route to the gateway's config. GET /v1/models lists the known names.
refused-no-provider =
    .message = This gateway has no AI provider, so it cannot answer for the model { $model }.
    .suggestion = Set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY and restart the gateway, or add a provider to koboshi.yaml (koboshi init writes one). To try it without a key, ask for the model sim/ok or start koboshi serve --demo.
refused-only-simulated =
    .message = This gateway has only simulated providers, so it cannot answer for the model { $model }.
    .suggestion = Add an AI provider with its key to providers in the gateway's config. As the file lists its providers, API keys in the environment add none. To try the gateway without a key, ask for the model sim/ok.
refused-body =
    .message = The request body cannot be used: { $why }.
    .suggestion = Correct the body, then send the request again.
refused-body-empty =
    .message = The request body is empty.
    .suggestion = Send the request as one JSON object.
refused-body-cut =
    .message = The JSON of the request body ends too early, at line { $line }, column { $column }.
    .suggestion = Check that the whole body was sent, and that all brackets and quotation marks are closed.
refused-body-not-json =
    .message = The request body is not valid JSON: there is a mistake at line { $line }, column { $column }.
    .suggestion = Correct the JSON there, then send the request again.
refused-body-not-utf8 =
    .message = The request body is not valid UTF-8: byte { $at } does not fit.
    .suggestion = Encode the body as UTF-8, then send the request again.
refused-body-not-object =
    .message = The request body must be one JSON object.
    .suggestion = Send an object, not a list or a single value.
refused-body-too-deep =
    .message = The JSON of the request body is nested deeper than { $limit } levels.
    .suggestion = Use fewer levels of lists and objects, then send the request again.
refused-body-large =
    .message = The request body is larger than this gateway accepts, which is { $limit }.
    .suggestion = Send smaller or fewer files and messages, or raise the limit for bodies in the section serve of the gateway's config.
refused-body-slow =
    .message = The request body did not arrive within the time limit.
    .suggestion = Check the connection of the client, then send the request again.
refused-body-broken =
    .message = The request body broke off before it was complete.
    .suggestion = Send the request again, with the whole body.
refused-field-missing =
    .message = The request body lacks the field { $field }.
    .suggestion = Add { $field }, then send the request again.
refused-field-twice =
    .message = The request body has the field { $field } twice.
    .suggestion = Send it once: which of the two counts would be chance.
refused-field-type =
    .message = The field { $field } must be { $expected }.
    .suggestion = Correct { $field }, then send the request again.
refused-field-unknown =
    .message = The field { $field } is not known here.
    .suggestion = Leave it out. GET /koboshi/openapi.json shows the fields that are known.
refused-item-type =
    .message = { $field } must be an object.
    .suggestion = Correct { $field }, then send the request again.
refused-order =
    .message = The request body does not have the form of this endpoint: see line { $line }, column { $column }.
    .suggestion = GET /koboshi/openapi.json shows the form.
refused-order-large =
    .message = The request body is longer than { $limit }, the limit of the admin API.
    .suggestion = Send a shorter body.
refused-target =
    .message = There is no target { $target }.
    .suggestion = GET /koboshi/targets lists the targets and their keys.
refused-scope-key =
    .message = The key { $key } does not name anything that Koboshi keeps state for.
    .suggestion = Write a level and a name, such as provider:openai or target:openai/gpt-4o. GET /koboshi/keys lists the keys.
refused-scope-unknown =
    .message = No target has the key { $key }.
    .suggestion = GET /koboshi/keys lists the keys. Set force to do it all the same.
refused-scope-near =
    .message = No target has the key { $key }.
    .suggestion = Similar keys are { $near }. GET /koboshi/keys lists all of them. Set force to do it all the same.
refused-until =
    .message = The field until must be a time in the future.
    .suggestion = Write it like 2030-01-31T12:00:00Z.
refused-query =
    .message = The query parameter { $field } is not known here.
    .suggestion = Use one of these: { $known }.
refused-query-choice =
    .message = The query parameter { $field } has an unknown value.
    .suggestion = Use one of these: { $known }.
refused-query-number =
    .message = The query parameter { $field } must be a number from 1 to { $limit }.
    .suggestion = Correct it, then send the request again.
refused-query-day =
    .message = { $field } in the address is no day, or the days are in the wrong order.
    .suggestion = Write days as in 2026-11-18, the earlier one in from.
refused-query-time =
    .message = The query parameter { $field } is neither a time nor a length of time.
    .suggestion = Write a time like 2030-01-31T12:00:00Z, or a length of time like 2h.
refused-feed-full =
    .message = Too many clients follow the feed already.
    .suggestion = Close one of them, then try again.
refused-agents-none =
    .message = This gateway keeps no agents.
    .suggestion = koboshi up runs the gateway and the agents in one process. On the machine of koboshi supervise, ask without --url.
refused-agent-name =
    .message = The agent is missing, too long, or named where none is expected.
    .suggestion = Write it as agent/project. GET /koboshi/agents lists all of them.
refused-agent-unknown =
    .message = No agent is called { $agent }.
    .suggestion = GET /koboshi/agents lists the agents of this process.
refused-agent-near =
    .message = No agent is called { $agent }.
    .suggestion = There are { $known }.
refused-agent-project =
    .message = { $agent } runs in several projects.
    .suggestion = Name one of { $known }.
refused-agent-run =
    .message = { $agent } has no such run.
    .suggestion = { $count } are kept; 1 is the newest.
refused-agent-place =
    .message = { $field } is not readable.
    .suggestion = Send run as a number or an id of a run, and from as it stands in next of the last answer.
refused-agents-away =
    .message = The supervisor does not answer ({ $why }).
    .suggestion = Try again in a moment.
refused-store =
    .message = The store cannot be read now ({ $why }).
    .suggestion = Check the store of this gateway, then try again. GET /ready says whether it is connected.
refused-internal =
    .message = An internal error occurred in Koboshi.
    .suggestion = Try again. If it keeps happening, report it together with the request id.

expected-model-name = the name of a model, as text
expected-true-or-false = true or false
expected-messages = a list of messages
expected-contents = a list of contents
expected-text-or-items = a text or a list of items
expected-count = a whole number from 1
expected-level = a number from 0

## Whether the gateway is ready

ready-no-provider =
    .message = No AI provider is configured: only models named sim/… are answered.
    .suggestion = Set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY and restart the gateway, add a provider to koboshi.yaml (koboshi init writes one), or start koboshi serve --demo.
ready-store =
    .message = The store has not been read yet.
    .suggestion = Wait a moment. If it stays so, store.error in this answer says why.

## GET /

root-about = Koboshi is running. It is a gateway for AI APIs: programs call it instead of the AI provider, and it retries, falls back to other providers and resumes broken streams.
root-dashboard = Its dashboard for operators is at /koboshi/.
root-chat = Its dashboard for operators is at /koboshi/, its chat page at /chat/.
root-hint = Set the base_url of your SDK or agent to this address. SDKs for OpenAI want /v1 at its end, those for Anthropic and Gemini want the address alone.
root-own = Status and administration

## koboshi serve, by what answers

serve-variables-unset = { $key }: `{ $target }` needs environment variables that are not set: set { $variables }, or describe the provider in `providers`
serve-port-used = cannot listen on { $address }: { $why }. Another program uses this port, perhaps another Koboshi: choose another one with --listen 127.0.0.1:PORT (or `serve.listen` in the config)
serve-no-address = cannot listen on { $address }: { $why }. This machine does not have this address: choose one that it has with --listen ADDRESS:PORT (or `serve.listen` in the config)
serve-port-reserved = cannot listen on { $address }: { $why }. Ports below 1024 are reserved: choose another one with --listen ADDRESS:PORT
serve-cannot-listen = cannot listen on { $address }: { $why }
serve-dashboard = The dashboard: { $place }
serve-chat = The chat page: { $place }
serve-demo = Running in demo mode: all answers are fake. No AI provider is asked, whatever the config and the environment name.
serve-no-key = No API key found. Only the models named sim/… are answered, with fake answers; every other model gets an error.
serve-no-key-next = Next: set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or add a provider to koboshi.yaml (koboshi init writes one). To try everything with fake answers: koboshi serve --demo
serve-sim-only = The config names no AI provider, only the simulated one (sim): its answers are fake, and every other model gets an error.
serve-no-calls = The simulated provider makes up no tool calls unless it is asked to, by the model's name (sim/ok?tools=yes), by tool_choice or by the prompt, because an agent would really run them.

## A key of the gateway itself that a provider refused

parked-resume = It stays parked until an operator of the gateway resumes it: { $command }
parked-resume-there = It stays parked until an operator resumes it on the gateway's machine: { $command }
simulated-failure = The simulated provider fails here because the name of its model asks for it. Use another model, such as sim/ok.
gateway-key-forbidden =
    .message = The AI provider accepted the API key of this gateway, but does not allow this use of it.
    .suggestion = Ask the operator of this gateway: the account needs access, or the request another model. Your own key is not the cause.
gateway-key-refused =
    .message = The AI provider did not accept the API key of this gateway: the key is missing, wrong or revoked.
    .suggestion = Ask the operator of this gateway to replace it. Your own key is not the cause, and waiting will not help.

own-key-simulated =
    .message = The simulated provider { $provider } refused the request, as the name of its model asks it to.
    .suggestion = There is no key to set. Use another model, such as sim/ok.
own-key-refused =
    .message = The provider { $provider } did not accept its API key: the key is missing, wrong or revoked.
    .suggestion = Set a valid key in { $place }. A changed file is read by itself; a changed variable needs a restart of the gateway. Waiting will not help.
own-key-forbidden =
    .message = The provider { $provider } does not allow this use of its API key.
    .suggestion = Give the account access at the provider, set another key in { $place } (a changed variable needs a restart of the gateway), or use another model.
key-in-variable = the environment variable { $name }
key-in-config = `{ $name }` of { $config }, or in the variable that it names
named-provider = Provider: { $name }.

## The end of a protected call

spent-one = { $message } ({ $kind }, 1 attempt) { $suggestion }
spent-many = { $message } ({ $kind }, { $count } attempts) { $suggestion }

## Agents of a supervisor

supervise-agents = Agents that are kept running ({ $count }): { $names }. `koboshi status` shows them, `koboshi logs AGENT` what they write.
supervise-metrics = Metrics at { $place }
reload-done = The config is in use.
reload-added = Added: { $names }
reload-removed = Removed: { $names }
reload-restarted = Restarted: { $names }
reload-changed = Changed without a restart: { $names }
reload-restart-for = In use after a restart of the supervisor: { $names }
reload-refused = the new config cannot be used, the old one goes on: { $why }
agent-running = running
agent-stopping = stopping
agent-stopped = stopped by an operator
agent-held = held by
agent-parked = parked until it is resumed
agent-aside = set aside:
agent-waiting = waiting for its time
# `agent-last` and `agent-rule` stand in one line, the line that decided follows.
agent-last = last run: ended { $time }, exit code { $code }: { $outcome }
agent-rule = rule { $rule }
agent-end-succeeded = succeeded
agent-end-idle = succeeded, too soon to have done anything
agent-end-stopped = stopped on request

## The error display of web pages (web/client). Its table is made from this section

display-retry = Try again
display-retrying = Trying again…
display-trim = Shorten the conversation
display-new = Start a new conversation
display-dismiss = Dismiss
display-copy = Copy the code
display-copied = Copied
display-stop = Stop
display-tried = Tried { $count } times.
display-wait = You can try again in { $time }.
display-wait-until = You can try again at { $time }.
display-auto = The next try starts in { $time }.
display-ready = You can try again now.
display-offline = This device is offline. You can try again when it is online.

display-kind-connection-failed =
    .message = The server cannot be reached.
    .suggestion = Check the network of this device, then try again.
display-kind-unauthorized =
    .message = You are not signed in, or the sign-in has expired.
    .suggestion = Sign in again, then go on.
display-kind-conversation-not-found =
    .message = This conversation has ended and is no longer on the server.
    .suggestion = What you see stays on the screen. Start a new conversation to go on.
display-kind-outbox-full =
    .message = Too many messages wait to be sent.
    .suggestion = Wait until the connection is back, then send this one again.
display-kind-superseded =
    .message = This page was opened again, and the newer one goes on.
    .suggestion = Go on in the newer window.
display-kind-internal =
    .message = Something went wrong.
    .suggestion = Try again. If it goes on, tell the people who run this site the code below.

## Sessions

session-retry = This attempt failed. The next one follows in { $wait }.
session-retry-busy = The AI service is busy. The next attempt follows in { $wait }.
session-recover = The connection to the server was interrupted. The answer is started again.
session-no-access =
    .message = This gateway needs a key of its own or a ticket, and the connection has none that is valid.
    .suggestion = Get a ticket with POST /v1/session/ticket and one of the gateway's keys, then connect with it. A key of an AI provider is not accepted here.
session-ticket =
    .message = The ticket is not valid: it was used already, or its time is over.
    .suggestion = Get a new one with POST /v1/session/ticket, then connect again.
session-unknown =
    .message = The session was not found, or the token with which it is resumed is wrong.
    .suggestion = Check session and resume of hello, or begin a new session without them.
session-refused =
    .message = What this session message asks for is not possible now.
    .suggestion = The field detail says why. The same message will fail again as long as that holds.
session-no-model =
    .message = The message names no model, and the gateway has no default model for sessions.
    .suggestion = Send the field route with the message, or set sessions.model in the gateway's config.

# `koboshi spend`
spend-days = From { $from } to { $to } ({ $zone })
spend-empty = Nothing was spent in these days.
spend-attempts = attempts
spend-input = input tokens
spend-output = output tokens
spend-cost = cost
spend-unknown = unknown
spend-total = total
spend-by-key = key
spend-by-model = model
spend-by-route = route
spend-by-agent = agent
spend-by-day = day
spend-unpriced = { $tokens } tokens are of models whose price is unknown: they are in no cost. Prices can be added in a models file (`models_file`).
spend-estimated = { $tokens } tokens of { $attempts } attempts are estimated: the provider stated no count, or the answer was cut before it did.
spend-lost = { $attempts } attempts led to no answer for a client; as far as prices are known, they cost { $cost }.
spend-lesser = Lesser answers cost { $cost }.
spend-budget-day = { $key }: { $spent } of { $limit } for the day is spent ({ $share } %); it is renewed at { $until }
spend-budget-month = { $key }: { $spent } of { $limit } for the month is spent ({ $share } %); it is renewed at { $until }

# `koboshi key`
key-exists = There is a key { $name } already. Revoke it first, or choose another name.
key-by-hand = The key cannot be written into { $file }. The key is printed above; add these lines under `keys` yourself:
    { $lines }
key-made = This key is shown only here. Its hash is in { $file } under the name { $name }; clients send it as their API key.
key-first = It is the first key: from now on every client needs one, and the dashboard, the commands with --url and /metrics are closed, also on this machine, until the file has an admin key. Make one with `openssl rand -hex 32`, and write its hash (`printf %s KEY | sha256sum`) into the file, as `sha256` under `admin`.
key-unknown-name = { $file } has no key { $name }.
key-last = { $name } is the only key of { $file }: without any, every program of this machine could call the gateway. Add another key first, or remove it yourself.
key-revoke-by-hand = The key { $name } cannot be removed from { $file } line by line. Remove it yourself.
key-revoked = { $name } is no longer a key in { $file }. A running gateway refuses it as soon as it has read the file again.
key-no-config = There is no config file to write to. `koboshi init` writes one; --config names another.
## koboshi drill

drill-no-config = there is no config to drill: name one with --config, or write a first one with koboshi init
drill-no-routes = the config has no routes with targets, so there is nothing to drill: add `routes`
drill-unknown = there is no scenario { $name }; there are { $known }
drill-progress = { $done } of { $total } scenarios …
drill-route = { $route }: { $good } of { $total } scenarios good
drill-targets = Targets
drill-after = after { $seconds } s
drill-calls = upstream calls: { $calls }
drill-failed = { $ends } { $kind } (status { $status })
drill-ends-answer = answer
drill-ends-lesser = lesser answer
drill-ends-error = error
drill-ends-damaged = damaged answer
drill-ends-nothing = neither answer nor error
drill-better = What would make it better
drill-nothing-better = No change that was tried makes it better.
drill-score = Score: { $score } % ({ $good } of { $total })
drill-page-title = Koboshi drill
drill-head-scenario = Scenario
drill-head-client = The client sees
drill-head-after = After
drill-head-calls = Upstream calls
drill-virtual = The providers were simulated and time was virtual: every second was caused by the failure.
drill-better-fallback = no fallback for `{ $route }`: { $count } scenarios end in an error; add one
drill-better-fallback-of-one = no fallback for `{ $route }`: 1 scenario ends in an error; add one
drill-better-other-provider = the targets of `{ $route }` fail together: { $count } scenarios end in an error; add a target of another provider
drill-better-other-provider-of-one = the targets of `{ $route }` fail together: 1 scenario ends in an error; add a target of another provider
drill-better-attempts = too few attempts: { $count } scenarios of `{ $route }` end in an answer with 3
drill-better-attempts-of-one = too few attempts: 1 scenario of `{ $route }` ends in an answer with 3
drill-better-guard = the loop guard may not act for `{ $route }`: a model that repeats one tool call is not stopped; set it to `stop`
drill-better-complete = streams of `{ $route }` begin before it is known that they end well: { $count } scenarios end in an answer with `complete`, at the price of a later first word
drill-better-complete-of-one = streams of `{ $route }` begin before it is known that they end well: 1 scenario ends in an answer with `complete`, at the price of a later first word
drill-better-timeouts = the limits of time are long: { $count } scenarios of `{ $route }` end in less than half the time with `first_token: 20s`, `idle: 20s` and `unary: 60s`
drill-better-timeouts-of-one = the limits of time are long: 1 scenario of `{ $route }` ends in less than half the time with `first_token: 20s`, `idle: 20s` and `unary: 60s`
drill-better-prepared = when every target of `{ $route }` fails, clients get an error; a prepared text (`degrade.answers_file`) or a model of another provider (`degrade.simple_model`) answers then
drill-on-throttled = throttled, a wait of 20 s is stated
drill-on-throttled-unstated = throttled, no wait is stated
drill-on-quota = daily quota used up
drill-on-server-error-once = one server error (500)
drill-on-server-error = server errors (500)
drill-on-unavailable = service unavailable (503)
drill-on-overloaded = model overloaded (529)
drill-on-reset = connection reset
drill-on-hang-before-head = no answer ever begins
drill-on-hang-after-head = silence after the head of the answer
drill-on-hang-in-text = silence in the middle of the text
drill-on-slow-first-token = first token after 45 s
drill-on-cut-before-text = cut before the text
drill-on-cut-in-text = cut in the middle of the text
drill-on-cut-in-tool-call = cut inside a tool call
drill-on-no-end-mark = stream ends without its end mark
drill-on-error-in-200 = error inside a 200
drill-on-error-in-text = error in the middle of a stream
drill-on-empty = empty answer
drill-on-broken-json = broken JSON in a stream
drill-on-half-body = half of the body
drill-on-web-page = web page in place of an answer
drill-on-broken-tool-arguments = tool arguments in another notation
drill-on-unreadable-tool-arguments = tool arguments that cannot be read
drill-on-looped-tool-calls = the same tool call again and again
drill-on-dead-key = API key rejected
drill-on-empty-account = account without credit
drill-on-context-too-large = conversation too long for the model
drill-on-content-filter = prompt refused by the content filter
drill-on-dns = name of the server not found (DNS)
drill-on-certificate = certificate not trusted
drill-on-flapping = up and down in turns, six requests
drill-on-all-down = every target down
drill-on-store-away = Koboshi's store cannot be reached
drill-on-store-full = Koboshi's store is full

## Notices

notice-severity-info = INFO
notice-severity-warning = WARNING
notice-severity-critical = CRITICAL
notice-breaker = { $subject } fails too often and is not used for a while (its breaker is open)
notice-cooldown = { $subject } is in cooldown
notice-park = { $subject } is parked
notice-budget-near = { $subject }: at least 80 % is spent
notice-budget-spent = { $subject }: it is spent, and requests with this key are refused
notice-over = { $subject } can be used again
notice-over-budget = { $subject }: there is room again
notice-the-route = the route { $name }
notice-route = { $subject }: none of its targets can be used
notice-route-next = Its requests fail or get a lesser answer. `koboshi status` says why each target is out of use; another target in its chain would have answered.
notice-over-route = { $subject }: one of its targets can be used again
notice-client-day = budget of the key { $name } for the day
notice-client-month = budget of the key { $name } for the month
notice-many = [{ $severity }] { $count } notices: { $began } began, { $worse } got worse, { $over } over
notice-more = And { $count } more. `koboshi status` shows what is in force now.
notice-dropped = { $count } older notices are lost: there were too many to keep while this channel did not work, or it refused them.
notice-worse = It got worse than it was when you were told first.
notice-since = Since { $since }.
notice-until = Since { $since }, until { $until }.
notice-resume = It stays so until someone resumes it: { $command }
notice-at-least = at least { $count }
notice-lasted = It lasted { $length }: from { $since } to { $until }.
notice-cost = Meanwhile { $faults } attempts failed. { $lost } attempts were sent whose answer no client got ({ $lost-cost }); lesser answers cost { $lesser-cost }.
notice-cost-nothing = No failed attempt was counted meanwhile.
notice-test = This is a test notice. The channel { $channel } works.
notify-unknown-channel = the config has no channel { $channel }: there are { $known }
notify-no-channels = the config has no channel { $channel }, and no other: add one under `notify.channels`
notify-sent = { $channel }: the test notice was taken ({ $kind })
notify-not-sent = { $channel }: the test notice was not taken ({ $kind }): { $why }

## What a single rule says, where its category or kind would say less: `rule-` and the rule's name

rule-process-memory-killed =
    .message = The system ended a process because this machine or container ran out of memory.
    .suggestion = Run fewer agents at once, or give this machine or container more memory. `journalctl -k | grep -i oom` shows which process was ended.
rule-process-memory-node =
    .message = A Node.js program reached the limit of its own heap. The machine may have memory left.
    .suggestion = Raise the limit, for example with NODE_OPTIONS=--max-old-space-size=4096 (MiB), or give the program less data at once.
rule-process-memory-java =
    .message = A Java program reached the limit of its own heap. The machine may have memory left.
    .suggestion = Raise the limit with -Xmx, for example JAVA_TOOL_OPTIONS=-Xmx4g, or give the program less data at once.
rule-process-memory-gpu =
    .message = The memory of the GPU is used up.
    .suggestion = Use a smaller batch or model, or end the other programs on the GPU: `nvidia-smi` lists them.
rule-tool-resource-memory =
    .message = The tool ran out of memory.
    .suggestion = Give it less data at once, run fewer programs beside it, or raise its limit: NODE_OPTIONS=--max-old-space-size=4096 for Node.js, -Xmx for Java, the memory limit of a container.
rule-tool-resource-port =
    .message = The port is already in use by another process.
    .suggestion = End that process or use another port. `ss -ltnp` lists who listens where (macOS: `lsof -iTCP -sTCP:LISTEN`); it is often the same program from an earlier attempt.
rule-tool-resource-files =
    .message = The limit of open files or of watched files is reached.
    .suggestion = Raise it: `ulimit -n 8192` for open files, `sysctl fs.inotify.max_user_watches=524288` for watched files. Or end programs that earlier attempts left running.
rule-tool-resource-disk =
    .message = The disk is full, or the quota on it is used up.
    .suggestion = Free some space. `df -h` shows which disk is full; `df -i` whether it has no room for further files.
rule-tool-git-lock =
    .message = Another git process uses this repository, or one that crashed left its lock file behind.
    .suggestion = Wait until the other git process has ended (`pgrep -a git` shows it). If none is running, delete the lock file that the message names, such as .git/index.lock.
rule-tool-git-public-key =
    .message = The git server accepted none of the SSH keys that were offered.
    .suggestion = Add the key to your account on that server, or load it with `ssh-add`; `ssh -T git@HOST` shows whether it is accepted. Or use the https:// address with a token.
rule-tool-git-owner =
    .message = git refuses to work in this repository because it belongs to another user.
    .suggestion = Run git as the owner of the folder, or allow it: `git config --global --add safe.directory FOLDER`.
rule-tool-git-conflict =
    .message = git stopped at a merge conflict: both sides changed the same lines.
    .suggestion = Resolve the marked places in the files that `git status` lists, add them with `git add`, and commit (in a rebase: `git rebase --continue`). To give up: `git merge --abort` or `git rebase --abort`.
rule-tool-git-hook =
    .message = The git server refused the push: a rule or a hook of this branch forbids it.
    .suggestion = Read the lines that begin with `remote:`. Mostly it helps to push to a branch of your own and open a pull request.
rule-tool-git-rejected =
    .message = The git server refused the push: the branch there has commits that are missing here.
    .suggestion = Get them with `git pull --rebase`, resolve conflicts if there are any, and push again.
rule-tool-git-local-changes =
    .message = git stopped because it would overwrite changes that are not committed.
    .suggestion = Commit them, or put them aside with `git stash -u`, and run the command again.
rule-tool-git-diverged =
    .message = Both branches have commits that the other one lacks, and git was not told how to bring them together.
    .suggestion = Use `git pull --rebase` or `git pull --no-rebase`. If the two have no common commit and belong together all the same: --allow-unrelated-histories.
rule-tool-git-no-repository =
    .message = This folder is in no git repository.
    .suggestion = Change to the folder of the repository, or make one with `git init`.
rule-tool-git-identity =
    .message = git does not know in whose name to commit.
    .suggestion = Set both: `git config --global user.name "NAME"` and `git config --global user.email ADDRESS`.
rule-tool-git-path =
    .message = git knows no file and no branch of this name.
    .suggestion = Check the spelling: `git status` lists files, `git branch -a` branches. A branch that is new on the server must be fetched first: `git fetch`.
rule-tool-npm-lock =
    .message = package.json and its lock file do not fit together, and `npm ci` changes neither.
    .suggestion = Run `npm install`, commit the changed lock file, and run `npm ci` again.
rule-tool-npm-permission =
    .message = npm may not write to the folder that it names.
    .suggestion = Install into the project (without -g), or give npm a folder of your own: npm config set prefix ~/.npm-global. If files of an earlier `sudo npm` are in the way, change their owner.
rule-tool-npm-no-package =
    .message = npm found no package.json in this folder.
    .suggestion = Change to the folder of the project, or make a package.json with `npm init -y`.
rule-tool-npm-script =
    .message = package.json has no script of this name.
    .suggestion = `npm run` lists the scripts that there are.
rule-tool-npm-integrity =
    .message = A downloaded package differs from the one in the lock file.
    .suggestion = Run `npm cache clean --force` and install again. If it stays, compare the registry with the one of the lock file before you renew the lock file.
rule-tool-npm-engine =
    .message = A package needs another version of Node.js or another platform.
    .suggestion = Install the version that the message names, or a version of the package that fits yours.
rule-tool-npm-not-found =
    .message = The npm registry has no package or version of this name that you may read.
    .suggestion = Check the spelling and the version. For a private package sign in with `npm login`, and check `registry` in .npmrc.
rule-tool-npm-failed =
    .message = A script that npm ran has failed.
    .suggestion = The cause stands above npm's own lines, in the output of the script. Run the script by itself to see it.
