# Koboshi が利用者に示す文章（日本語）。id と変数は en.ftl と同じです（テストで照合します）。
# 書き方: 何が、どこ（このマシン、ゲートウェイ、プロバイダー）で起きたか、次にすることを 1 つ。です・ます調で、短く。

## 障害の種類。理由によって助言が変わるものは kind-<種類>-<理由>

kind-connection-failed =
    .message = AI プロバイダーへの接続に失敗しました。リクエストがプロバイダーまで届かなかったか、途中で接続が切れました。
    .suggestion = このマシンのネットワーク、VPN、プロキシの設定を確認してから、もう一度送信してください。
kind-connection-failed-dns =
    .message = AI プロバイダーへの接続に失敗しました。接続先サーバーの名前を解決できません（DNS）。
    .suggestion = このマシンがネットワークにつながっているか、VPN とプロキシの設定、base_url のつづりを確認してください。
kind-connection-failed-unreachable =
    .message = AI プロバイダーへの接続に失敗しました。このマシンから接続先サーバーまでの経路がありません。
    .suggestion = このマシンのネットワーク、VPN、ファイアウォールと、base_url のアドレスとポートを確認してください。
kind-connection-failed-reset =
    .message = AI プロバイダーへの接続に失敗しました。応答が届く前に接続が切断されました（リセット）。
    .suggestion = もう一度送信してください。繰り返す場合は、このマシンとプロバイダーの間にあるプロキシ、VPN、ファイアウォールを確認してください。
kind-connection-failed-handshake =
    .message = AI プロバイダーへの接続に失敗しました。暗号化された接続（TLS）を確立できませんでした。
    .suggestion = base_url のスキーム（https または http）とポートが正しいか、途中のプロキシやファイアウォールに妨げられていないかを確認してください。
kind-connection-failed-certificate =
    .message = AI プロバイダーへの接続に失敗しました。接続先の証明書が、このマシンでは信頼されていません。
    .suggestion = 再試行しても解決しません。社内プロキシが通信を検査している場合は、自社の CA 証明書を追加してください。このマシンの時計と、base_url のホスト名も確認してください。
kind-connection-failed-proxy =
    .message = AI プロバイダーへの接続に失敗しました。途中のプロキシが接続を通しませんでした。
    .suggestion = プロキシ設定（HTTPS_PROXY）のアドレスと認証情報を確認するか、プロバイダーのホストをプロキシの対象から外してください。
kind-timeout =
    .message = AI プロバイダーからの応答がタイムアウトしました。
    .suggestion = もう一度送信してください。繰り返す場合は、より速いモデルを使うか、設定でタイムアウトを長くしてください。
kind-timeout-connect =
    .message = AI プロバイダーへの接続がタイムアウトしました。
    .suggestion = このマシンのネットワーク、VPN、ファイアウォールを確認してください。接続のタイムアウトを長くして効果があるのは、回線が非常に遅い場合だけです。
kind-timeout-first-content =
    .message = AI プロバイダーからの応答がタイムアウトしました。リクエストは受け付けられましたが、最初の応答が制限時間内に届きませんでした。
    .suggestion = もう一度送信するか、別のモデルを使ってください。長いプロンプトや推論モデルでは、設定で最初の応答までのタイムアウト（timeouts.first_token）を長くしてください。
kind-timeout-idle =
    .message = AI プロバイダーからの応答がタイムアウトしました。応答は始まりましたが、途中で通信が止まりました。
    .suggestion = もう一度送信してください。長く考えるモデルでは、設定で無通信のタイムアウト（timeouts.idle）を長くしてください。
kind-timeout-total =
    .message = AI プロバイダーからの応答がタイムアウトしました。リクエスト全体のタイムアウトまでに応答が完了しませんでした。
    .suggestion = 一度に依頼する量を減らすか、設定で全体のタイムアウト（timeouts.total、serve.deadline）を長くしてください。
kind-timeout-unary =
    .message = AI プロバイダーからの応答がタイムアウトしました。ストリームを使わない応答の制限時間（timeouts.unary）内に、応答が始まりませんでした。
    .suggestion = ストリームを使うか、一度に依頼する量を減らすか、設定でプロバイダーの timeouts.unary を長くしてください。
kind-timeout-upstream =
    .message = AI プロバイダーからの応答がタイムアウトしました。プロバイダー側のサーバー、またはその手前のプロキシや CDN が、処理を待ちきれずに打ち切りました。
    .suggestion = もう一度送信してください。繰り返す場合は、ストリームを使うか、一度に依頼する量を減らしてください。このマシンのタイムアウトを長くしても効果はありません。
kind-timeout-deadline =
    .message = AI プロバイダーからの応答がタイムアウトしました。応答が完了する前に、クライアントがこのリクエストに指定した期限を過ぎました。
    .suggestion = x-koboshi-deadline の値を長くするか、このヘッダーを外して、もう一度送信してください。
kind-unavailable =
    .message = AI サービスが一時的に利用できません。プロバイダーか、その手前のゲートウェイが停止または再起動しています。
    .suggestion = しばらくしてからもう一度お試しください。問題が続く場合は、システム管理者に連絡してください。
kind-unavailable-loading =
    .message = AI サービスが一時的に利用できません。モデルを読み込んでいるところです。
    .suggestion = 読み込みが終わるまで（通常は数分）待ってから、もう一度送信してください。
kind-unavailable-locked =
    .message = この会話では、別のリクエストがまだ処理中です。
    .suggestion = その応答が終わるのを待つか、停止してから、もう一度送信してください。
kind-unavailable-stopping =
    .message = AI サービスが一時的に利用できません。ゲートウェイが停止または再起動されるため、応答を完了できませんでした。
    .suggestion = しばらくしてから、もう一度送信してください。
kind-unavailable-resources =
    .message = AI サービスが一時的に利用できません。ゲートウェイのマシンで、開けるファイルの数、ネットワークポート、メモリのいずれかが足りず、プロバイダーに接続できませんでした。
    .suggestion = 少し待ってからもう一度お試しください。繰り返し起きる場合は、ゲートウェイが開けるファイル数の上限（ulimit -n、systemd ユニットの LimitNOFILE）を上げるか、そのマシンのポートやメモリを空けてください。
kind-connection-refused =
    .message = AI プロバイダーへの接続が拒否されました。ポートが違うか、サービスが起動していません。
    .suggestion = base_url のホストとポートを確認してください。ご自身のサーバーであれば、起動してください。
kind-connection-closed =
    .message = 応答が完了する前に接続が切断されました。
    .suggestion = もう一度送信してください。応答の一部が届いている場合は、完成した応答として扱わないでください。
kind-unauthorized =
    .message = API キーが無効です。設定されていないか、間違っているか、失効しています。
    .suggestion = このプロバイダーの有効な API キーを設定してから、もう一度送信してください。待っても解決しません。
kind-token-expired =
    .message = AI プロバイダーへのサインインの有効期限が切れています。
    .suggestion = もう一度サインインするか、アクセストークンを更新してから、もう一度送信してください。
kind-token-expired-token =
    .message = ゲートウェイが AI プロバイダーのアクセストークンを取得できませんでした。
    .suggestion = 原因はゲートウェイのログにあります（token_command または credentials_file の失敗）。ゲートウェイの管理者に連絡してください。
kind-permission-denied =
    .message = API へのアクセス権限がありません。API キーは有効ですが、この操作は許可されていません。
    .suggestion = プロバイダーのアカウントの管理者に権限の付与を依頼するか、権限のある API キーまたはモデルを使ってください。
kind-permission-denied-region =
    .message = API へのアクセス権限がありません。この国または地域からの利用は許可されていません。
    .suggestion = お使いの地域に対応しているプロバイダーかエンドポイントを使ってください。待っても解決しません。
kind-permission-denied-blocked =
    .message = AI プロバイダーの手前にあるファイアウォールまたは CDN が、リクエストをブロックしました。API 自体は応答していないため、API キーの問題とは限りません。
    .suggestion = 別のネットワークから試すか、VPN やプロキシを使わずに試してください。base_url が API のアドレスかどうかも確認してください。繰り返す場合は、ページに表示された ID（Cloudflare では Ray ID）を添えてプロバイダーに問い合わせてください。
kind-permission-denied-model =
    .message = API へのアクセス権限がありません。このアカウントでは、このモデルを使えません。
    .suggestion = 別のモデルを選ぶか、プロバイダーのアカウントの管理者にこのモデルの有効化を依頼してください。
kind-rate-limited =
    .message = AI プロバイダーのレート制限に達しました。短時間に送信したリクエスト数またはトークン数が多すぎます。
    .suggestion = しばらく待ってから再度お試しください。制限は自動的に解除されるため、設定の変更は不要です。
kind-rate-limited-concurrency =
    .message = このアカウントで同時に実行中のリクエストが多すぎます。
    .suggestion = しばらく待ってから再度お試しください。繰り返す場合は、同時に動かすエージェントを減らしてください。
kind-rate-limited-operator =
    .message = このゲートウェイに設定された同時リクエスト数の上限（gate.max_concurrency）に達しました。
    .suggestion = 実行中のリクエストが終わるのを待ってから、もう一度お試しください。
kind-quota-exceeded =
    .message = このアカウントの利用枠を使い切りました。
    .suggestion = 利用枠が更新されるまで待つか、別のアカウントかプロバイダーを使ってください。
kind-quota-exceeded-window =
    .message = このアカウントの利用枠（数時間または 1 週間ごと）を使い切りました。
    .suggestion = 利用枠が更新されるまで待つか、別のモデル、アカウント、プロバイダーを使ってください。更新前に再試行しても失敗します。
kind-quota-exceeded-day =
    .message = このアカウントの今日の利用枠を使い切りました。
    .suggestion = プロバイダー側で日付が変わるまで待つか（タイムゾーンが異なる場合があります）、別のアカウントかプロバイダーを使ってください。
kind-quota-exceeded-month =
    .message = このアカウントの今月の利用枠を使い切りました。
    .suggestion = プロバイダーの管理画面で月間の上限を引き上げるか、月が変わるまで別のアカウントかプロバイダーを使ってください。
kind-quota-exceeded-plan =
    .message = このアカウントのプランでは、この機能を利用できません。
    .suggestion = プランで使えるモデルを選ぶか、プランを変更してください。待っても解決しません。
kind-quota-exceeded-billing =
    .message = アカウントの残高が不足しているか、支出の上限に達しています。
    .suggestion = プロバイダーの管理画面で、クレジットの追加、未払い分の支払い、または支出上限の引き上げを行ってください。待っても解決しません。
model-quota-exceeded =
    .message = このアカウントで、このモデルの利用枠を使い切りました。
    .suggestion = 別のモデル、アカウント、プロバイダーを使うか、利用枠が更新されるまで待ってください。
model-quota-exceeded-window =
    .message = このアカウントで、このモデルの利用枠（数時間または 1 週間ごと）を使い切りました。
    .suggestion = 別のモデル、アカウント、プロバイダーを使うか、利用枠が更新されるまで待ってください。それより前にこのモデルで再試行しても失敗します。
model-quota-exceeded-day =
    .message = このアカウントで、このモデルの今日の利用枠を使い切りました。
    .suggestion = 別のモデル、アカウント、プロバイダーを使うか、プロバイダー側で日付が変わるまで待ってください（タイムゾーンが異なる場合があります）。
model-quota-exceeded-month =
    .message = このアカウントで、このモデルの今月の利用枠を使い切りました。
    .suggestion = 月が変わるまで別のモデル、アカウント、プロバイダーを使うか、プロバイダーの管理画面で月間の上限を引き上げてください。
kind-context-build-failed =
    .message = コンテキストの構築に失敗しました。
    .suggestion = プロバイダーには何も送信されていません。このメッセージのコードを添えて、ゲートウェイの管理者に連絡してください。
kind-context-too-large =
    .message = コンテキストがトークン数の上限を超えています。会話が長すぎて、モデルが一度に読み込めません。
    .suggestion = 質問を短くするか、会話をリセットしてください。より長いコンテキストを扱えるモデルを使う方法もあります。
kind-template-not-found =
    .message = プロンプトテンプレートが見つかりません。
    .suggestion = 設定に書いたテンプレート名を確認してください。プロバイダーには何も送信されていません。
kind-invalid-request =
    .message = リクエストの内容に誤りがあり、AI プロバイダーが受け付けませんでした。
    .suggestion = リクエストを修正してください。同じ内容で送信しても、また失敗します。
kind-invalid-request-capability =
    .message = このモデルは、リクエストに必要な機能に対応していません。
    .suggestion = 対応しているモデル（画像、ツール、構造化出力など）を選ぶか、その部分を除いて送信してください。
kind-invalid-request-path =
    .message = リクエストの送信先（URL）がプロバイダーに存在しません。
    .suggestion = base_url とパスを確認してください。/v1 の抜けや重複がよくある原因です。
kind-invalid-request-output-limit =
    .message = 指定された出力の長さが、このモデルの上限を超えています。
    .suggestion = max_tokens を小さくしてから、もう一度送信してください。
kind-model-not-found =
    .message = モデルが見つかりません。名前が違うか、提供が終了したか、このアカウントでは使えません。
    .suggestion = モデル名のつづりを確認するか、プロバイダーの現在の一覧から選んでください。
kind-invalid-message =
    .message = セッションのメッセージを読み取れませんでした。
    .suggestion = クライアントが送るメッセージの形式を修正してください。同じメッセージを送信しても、また失敗します。
kind-message-too-large =
    .message = リクエストのサイズが、受け付けられる上限を超えています。
    .suggestion = ファイルや画像を小さくするか数を減らして、もう一度送信してください。
kind-response-invalid =
    .message = AI モデルからの応答が不正です。応答は届きましたが、内容を利用できません。
    .suggestion = もう一度送信してください。繰り返す場合は、別のモデルを使ってください。
kind-response-invalid-empty =
    .message = AI モデルからの応答が不正です。応答の中身が空でした。
    .suggestion = もう一度送信してください。繰り返す場合は、質問の書き方を変えるか、別のモデルを使ってください。
kind-response-invalid-tool-call =
    .message = AI モデルからの応答が不正です。ツール呼び出しを読み取れなかったため、ツールは実行していません。
    .suggestion = もう一度送信してください。繰り返す場合は、別のモデルを使うか、ツールのパラメーターを簡単にしてください。
kind-response-invalid-output-limit =
    .message = AI モデルからの応答が不正です。応答が完成する前に、出力の上限に達しました。
    .suggestion = max_tokens を大きくするか、より短い応答を依頼してください。
kind-response-invalid-not-api =
    .message = API の応答ではなく、Web ページが返されました。プロキシ、ネットワークのログイン画面、または base_url にある Web サイトのページと思われます。
    .suggestion = base_url を確認してください。ホテルや社内のネットワークでログインが必要な場合は、先にブラウザーでログインしてください。同じリクエストを再送しても解決しません。
kind-content-filtered =
    .message = コンテンツフィルターにより、リクエストまたは応答がブロックされました。
    .suggestion = 表現を変えて送信してください。同じ内容のままでは、再びブロックされます。
kind-overloaded =
    .message = AI モデルが過負荷状態です。プロバイダー側の処理能力が不足しています。
    .suggestion = しばらくしてからもう一度お試しください。お急ぎの場合は別のモデルを使ってください。
kind-tool-arguments-invalid =
    .message = AI モデルが書いたツール呼び出しの引数を読み取れませんでした。ツールは実行していません。
    .suggestion = モデルに呼び出しを修正させてください。繰り返す場合は、別のモデルを使うか、ツールのパラメーターを簡単にしてください。
kind-agent-error =
    .message = エージェントがエラーで停止しました。
    .suggestion = エージェントのログの最後の数行を確認してから、もう一度起動してください。
kind-agent-error-turns =
    .message = 作業が終わる前に、エージェントがターン数の上限に達しました。
    .suggestion = 作業を小さく分けるか、ターン数の上限を増やしてから、もう一度起動してください。
kind-tool-failed =
    .message = エージェントが呼び出したツールが失敗しました。
    .suggestion = ツールのエラー内容を確認し、原因を取り除いてから呼び出し直してください。
kind-tool-loop =
    .message = エージェントが進展のないツール呼び出しを繰り返したため、停止しました。
    .suggestion = 次のメッセージで別の方法を指示するか、ツールのエラーの原因を取り除いてください。
kind-call-depth-exceeded =
    .message = 1 回のやり取りで許されるツール呼び出しの回数を超えました。
    .suggestion = 次のメッセージを送ると、回数は最初から数え直されます。作業を小さく分けると、上限に達しにくくなります。
kind-spawn-failed =
    .message = このマシンでエージェントを起動できませんでした。
    .suggestion = コマンドが存在するか、実行権限があるか、作業ディレクトリがあるかを確認してください。
kind-spawn-failed-command =
    .message = コマンドが見つからないため、実行が終了しました（終了コード 127）。
    .suggestion = 下に示したコマンドをインストールするか、その場所を PATH に追加してください。
kind-process-failed =
    .message = エージェントのプロセスが異常終了しました。
    .suggestion = ログの最後の数行で原因を確認し、取り除いてから、もう一度起動してください。
kind-process-failed-memory =
    .message = 必要なメモリを確保できず、プロセスが終了しました。
    .suggestion = 一度に扱うデータや同時に動かすプログラムを減らすか、マシンまたはコンテナのメモリを増やしてください。
kind-process-failed-signal =
    .message = エージェントのプロセスが、外部からのシグナルで終了しました。
    .suggestion = 終了させたのが人か、システムか、コンテナの制限かを確認してから、もう一度起動してください（メモリ不足の場合は、`journalctl -k | grep -i oom` に表示されます）。
kind-process-failed-time-limit =
    .message = 制限時間に達したため、実行が打ち切られました（終了コード 124。timeout コマンドなど）。
    .suggestion = 作業を小さく分けるか、制限時間を長くしてから、もう一度起動してください。
kind-process-failed-crash =
    .message = エージェントのプロセスがクラッシュしました。外部から終了させられたのではなく、プロセス自体の不具合です。
    .suggestion = ログの最後の数行を確認し、エージェントの開発元に報告してください。新しいバージョンへの更新で直ることもあります。
kind-process-failed-turns =
    .message = ターン数の上限に達したため、エージェントのプロセスが終了しました。
    .suggestion = 作業を小さく分けるか、ターン数の上限を増やしてから、もう一度起動してください。
kind-cooling-down =
    .message = このターゲットは、直前の失敗のためクールダウン中です。終了するまでリクエストを送信しません。
    .suggestion = クールダウンが終われば自動的に再開するため、操作は不要です。クールダウン中は別のターゲットを使うこともできます。
kind-cooling-down-operator =
    .message = 管理者がこのターゲットの使用を一時停止しています。
    .suggestion = ゲートウェイの管理者に確認するか、別のモデルを使ってください。
kind-parked =
    .message = このターゲットは停止中です。手動で再開するまで使用できません。
    .suggestion = ゲートウェイの管理者が koboshi status で理由を確認し、原因を取り除いてから koboshi resume KEY で再開します（KEY は status に表示されます）。
kind-internal =
    .message = 内部エラーが発生しました。原因は、プロバイダーまたは Koboshi の側にあります。
    .suggestion = しばらくしてからもう一度お試しください。問題が続く場合は、プロバイダーの稼働状況を確認するか、リクエスト ID を添えてゲートウェイの管理者に連絡してください。
kind-conversation-not-found =
    .message = 会話が見つかりません。
    .suggestion = 新しい会話を始めてください。前の会話は削除されたか、別のサーバーにあります。
kind-message-save-failed =
    .message = メッセージの保存に失敗しました。
    .suggestion = 入力した内容を控えてから、もう一度送信してください。繰り返す場合は、ディスクの空き容量を確認してください。

## ツールの報告

tool-font =
    .message = ツールに必要なフォントがインストールされていません。
    .suggestion = フォントをインストールするか、インストール済みのフォントを使うようエージェントに指示してください。
tool-missing-module =
    .message = ツールに必要なライブラリがインストールされていません。
    .suggestion = ツールが動いている環境に、そのライブラリをインストールしてください。
tool-missing-command =
    .message = ツールに必要なプログラムがインストールされていないか、PATH にありません。
    .suggestion = プログラムをインストールするか、その場所を PATH に追加してください。
tool-version-conflict =
    .message = 必要なライブラリのバージョンの条件が両立せず、インストールできません。
    .suggestion = 競合しているバージョンを確認し、どちらかの条件を変更してください。同じ操作を繰り返しても解決しません。
tool-permission =
    .message = ツールに、ファイルまたはリソースへのアクセス権がありません。
    .suggestion = アクセス権を付与するか、別の場所で作業するようエージェントに指示してください。
tool-resource =
    .message = ツールの実行に必要なメモリやディスク容量などが不足しています。
    .suggestion = 空きを増やすか、作業を小さく分けてください。
tool-plotting =
    .message = ツールがグラフを描画できませんでした。
    .suggestion = 描画ライブラリと出力の設定を確認するか（ファイルに出力する場合、ディスプレイは不要です）、より簡単なグラフを依頼してください。
tool-file-io =
    .message = ツールがファイルを読み書きできませんでした。
    .suggestion = パスが存在するか、つづりが正しいかを確認してください。
tool-network =
    .message = ツールが、必要なサーバーまたはネットワークに接続できませんでした。
    .suggestion = 接続先のサーバーが動いているか、アドレスが正しいか、ツールが動いている環境のネットワークとプロキシの設定を確認してください。
tool-timeout =
    .message = ツールの処理が制限時間内に終わりませんでした。
    .suggestion = 作業を小さく分けるか、ツールのタイムアウトを長くしてください。
tool-syntax =
    .message = ツールに渡されたコードまたはコマンドに、構文エラーがあります。
    .suggestion = ツールが示した箇所を、エージェントに修正させてください。
tool-type-or-value =
    .message = ツールが実行したコードが、型または値の誤りで失敗しました。
    .suggestion = ツールが示した箇所のデータを、エージェントに確認させてください。
tool-invalid-arguments =
    .message = ツールが受け付けない引数で呼び出されました。
    .suggestion = 呼び出しの内容をツールのパラメーターと照らし合わせるよう、エージェントに指示してください。
tool-not-found-in-file =
    .message = ツールが置き換えようとした文字列が、ファイルの中に見つかりません。
    .suggestion = 編集する前に、エージェントにファイルを読み直させてください。
tool-auth =
    .message = ツールの認証に失敗しました。
    .suggestion = ツールが使う API キーまたはサインインを確認し、必要に応じて更新してください。そのまま呼び出しても解決しません。
tool-rate-limit =
    .message = ツールが利用しているサービスの呼び出し回数の上限に達しました。
    .suggestion = しばらく待ってから、ツールを呼び出し直してください。
tool-tool-missing =
    .message = エージェントが、存在しないツールを呼び出しました。
    .suggestion = ツールを接続するか、使えるツールをエージェントに伝えてください。
tool-test-failure =
    .message = テストは実行されましたが、失敗したテストがあります。
    .suggestion = ツール自体は正常です。失敗したテストをエージェントに確認させ、コードを修正させてください。
tool-other =
    .message = ツールがエラーを報告しました。
    .suggestion = ツールのエラー内容を確認し、原因を取り除いてから呼び出し直してください。

## ツール呼び出しの JSON の誤り。利用者向けとモデル向け

json-retry-user = このアクションは正しく実行されませんでした
json-exhausted-user = ユーザーのタスクを正しく実行できませんでした
json-retry-model =
    JSON構文エラーが発生しました。以下のJSONを修正してください。
    エラー: { $error }
    不正なJSON: { $json }

    正しいJSON形式でもう一度functionCallを送信してください。
json-exhausted-model =
    JSON構文エラーが解決できませんでした。タスクを正しく実行できません。
    エラー: { $error }
    不正なJSON: { $json }

json-near = 誤りはこの付近です: { $near }

json-what-schema = 引数がツールのスキーマに合っていません。
json-what-not-an-object = 引数は 1 つの JSON オブジェクトでなければなりません。
json-what-duplicate-key = 引数に同じキーが 2 回あり、どちらの値が正しいか判断できません。
json-what-several-objects = 1 つの呼び出しの引数は 1 つの JSON オブジェクトですが、複数送信されました。
json-what-other-tool = 引数の中に、呼び出されたものとは別のツールの名前があります。
json-what-empty = 呼び出しに引数がありません。
json-what-too-large = 引数が大きすぎます。
json-refused-model =
    { $what }呼び出しは実行されませんでした。
    エラー: { $error }
    引数: { $json }

    引数を修正して、もう一度functionCallを送信してください。
json-refused-end-model =
    { $what }解決できなかったため、タスクを正しく実行できません。
    エラー: { $error }
    引数: { $json }
json-form = このツールの引数の形式: { $form }

json-cut-end-model =
    出力上限により、この呼び出しは再び途中で切れたため、実行されませんでした。この方法ではタスクを実行できません。
    エラー: { $error }
json-cut-model =
    出力上限により、この呼び出しは途中で切れたため、実行されませんでした。
    エラー: { $error }

    内容を小さく分けるか、短くして、もう一度送信してください。同じ内容を送ると再び途中で切れます。
json-call = 呼び出し { $id }、ツール { $tool }。

## いつ再試行すればよいか、管理者の理由

try-again-in = { $length }後にもう一度お試しください。
try-again-after = { $time }以降にもう一度お試しください。
asks-again-in = いつ解除されるかは不明です。ゲートウェイは { $length }後にプロバイダーへもう一度問い合わせます。
asks-again-after = いつ解除されるかは不明です。ゲートウェイは { $time }以降にプロバイダーへもう一度問い合わせます。
provider-said = { $message }（プロバイダーの応答: { $said }）
operator-reason = 理由: { $reason }。
all-failed = このモデルの { $count } つのターゲットは、すべて失敗したか、使用できない状態です: { $targets }。
lacks-parts = 対応していない項目: { $parts }。
answer-differs = 続きを求めた別のターゲットが、ここまでとは異なる応答を返しました。2 つの応答をつなげることはせず、ここで終了します。
bare-quota-exceeded =
    .message = AI プロバイダーが 402（支払いが必要）を返しました。理由は示されていません。
    .suggestion = プロバイダーの管理画面で、アカウントの残高と支出上限を確認してください。
bare-unauthorized =
    .message = AI プロバイダーが 401（認証エラー）を返しました。理由は示されていません。
    .suggestion = このプロバイダーに使っている API キーを確認してください。
bare-permission-denied =
    .message = AI プロバイダーが 403（アクセス拒否）を返しました。理由は示されていません。
    .suggestion = アカウントと API キーで何が利用できるかを、プロバイダーの管理画面で確認してください。
gateway-bare-unauthorized =
    .message = AI プロバイダーが、このゲートウェイに 401（認証エラー）を返しました。理由は示されていません。
    .suggestion = ゲートウェイの管理者に、このプロバイダーの API キーの確認を依頼してください。お使いのキーはプロバイダーに送られていません。
gateway-bare-permission-denied =
    .message = AI プロバイダーが、このゲートウェイに 403（アクセス拒否）を返しました。理由は示されていません。
    .suggestion = ゲートウェイの管理者に、アカウントと API キーで何が利用できるかの確認を依頼してください。お使いのキーはプロバイダーに送られていません。

## ほかに手段がないときの応答

static-unavailable = 申し訳ありません。現在サービスが利用できません。しばらくしてからもう一度お試しください。
unavailable-long =
    申し訳ございません。AI アシスタントが現在利用できません。

    しばらく時間をおいてから再度お試しください。
    問題が続く場合は、システム管理者にお問い合わせください。
unavailable-contact =
    申し訳ございません。AI アシスタントが現在利用できません。

    システム管理者にお問い合わせください。
static-notice = AI サービスが一時的に利用できないため、事前定義された応答を表示しています。

## 説明の見出し

label-what = 何が起きたか
label-whose = 原因
label-do = 次にすること
label-wait = いつまで待つか
label-affects = 影響範囲
label-sure = 確度
label-said = エラーの原文
label-retry = 再試行
label-seen = { $line } 行目を、ルール { $rule } で判定しました
label-seen-from-end = 末尾から { $line } 行目を、ルール { $rule } で判定しました
log-is-empty = ログが空です。標準出力と標準エラー出力をファイルに保存するようにして、もう一度起動してください。
label-seen-exit-code = 理由を示す行がないため、終了コードだけで判断しました（ルール { $rule }）
label-seen-no-text = 本文にテキストがないため、該当する行はありません（ルール { $rule }）

origin-provider = AI プロバイダー
origin-transport = このマシンとプロバイダーの間のネットワーク
origin-tool = ツール、またはツールが使うサービス
origin-process = エージェントのプロセス
origin-client = リクエストの内容
origin-koboshi = Koboshi 本体

cause-rate-limited = アカウント（短時間のリクエスト数またはトークン数の超過）
cause-quota-exceeded = アカウント（利用枠の使い切り）
cause-quota-exceeded-billing = アカウント（残高不足、または支出の上限）
cause-quota-exceeded-plan = アカウント（プランの対象外）
cause-quota-exceeded-model = アカウント（このモデルの利用枠の使い切り）
cause-bare = 不明（AI プロバイダーが返したのはステータスだけです）
cause-unauthorized = API キー
cause-token-expired = サインインの期限切れ
cause-permission-denied = アカウントの権限
cause-permission-denied-blocked = AI プロバイダーの手前のファイアウォールまたは CDN
cause-content-filtered = AI プロバイダーのコンテンツフィルター
cause-cooling-down-operator = ゲートウェイの管理者の操作
cause-model-not-found-own = ゲートウェイの設定
cause-connection-refused = 接続先のアドレス、またはそのサーバー
cause-timeout-first-content = AI プロバイダー（応答が制限時間より遅い）
cause-timeout-idle = AI プロバイダー（制限時間より長く何も送信しなかった）
cause-timeout-unary = AI プロバイダー（応答が制限時間より遅い）
cause-timeout-total = リクエスト全体の制限時間（応答が時間内に終わらなかった）
cause-timeout-deadline = クライアントが指定した期限（応答が期限内に終わらなかった）

scope-request = この 1 件のみ
scope-key = この API キーを使うものすべて
scope-sign-in = このサインインを使うものすべて
scope-account = このアカウントを使うものすべて
scope-model = このモデルを使うものすべて
scope-provider = このプロバイダーを使うものすべて
scope-network = このマシンから同じホストへのリクエスト（ほかの通信に影響があるとは限りません）

confidence-low = 低（ステータスまたは終了コードだけで判断しました）
confidence-low-line = 低（エラーと思われる行がありますが、種類は特定できませんでした）
confidence-medium = 中（文言から判断しました）
confidence-medium-form = 中（文言ではなく、応答の形から判断しました）
confidence-high = 高（コード、ヘッダー、イベントに明記されています）

retry-yes = 可能です。同じリクエストをもう一度送信できます。
retry-after-wait = その時刻以降は可能です。
retry-after-sign-in = もう一度サインインすれば可能です。
retry-later = 今はできません。時間をおけば再試行できます。
retry-no = できません。原因を取り除くまで、再試行しても失敗します。
retry-other-yes = 別のプロバイダーやモデルなら、今すぐ使えるかもしれません。
retry-other-network = このマシンがオフラインでなければ、別のプロバイダーなら使えるかもしれません。
retry-other-no = 別のプロバイダーに変えても解決しません。
retry-tool-yes = 可能です。同じ呼び出しをもう一度試せます。
retry-tool-no = できません。原因を取り除くまで、同じ呼び出しは失敗します。
retry-process-yes = 可能です。もう一度起動できます。
retry-process-no = できません。原因を取り除くまで、起動しても失敗します。


step-login = プログラムがサインインを求めています。プログラムを起動して /login を実行するか、有効な API キーを設定してください。
exit-signal = 終了コード { $code } は、シグナル { $name } を表します。
exit-signal-kill = 終了コード { $code } は、シグナル { $name } を表します。メモリ不足のときにシステムが送ることもあります。
codes-own-key = プロバイダーがゲートウェイ自身のキーを拒否した場合、次の種類は HTTP 502 で返します: { $kinds }。クライアントが自分のキーを破棄しないようにするためです。
nothing-wrong = 問題は見つかりませんでした。
wait-until = { $time }まで（あと { $left }）
wait-over = 示された待ち時間は過ぎました。再試行できます。
wait-not-the-day = これはプロバイダーが示した待ち時間です。今日の利用枠は、プロバイダー側で日付が変わるまで更新されない場合があります。
wait-not-the-month = これはプロバイダーが示した待ち時間です。今月の利用枠は、月が変わるまで更新されない場合があります。
wait-then-try = 示された待ち時間が過ぎてから再試行してください。
wait-meanwhile-model = それまでは、別のモデル、アカウント、プロバイダーを使ってください。
wait-meanwhile-account = それまでは、別のアカウントかプロバイダーを使ってください。
wait-stated = 元のテキストの時刻: { $time }。
wait-assumed = 元のテキストにタイムゾーンの記載がないため、{ $zone }とみなしました。
wait-from-text = テキスト内の時刻（{ $time }）から数えています。
wait-from-file = テキストに時刻の記載がないため、ファイルの最終更新（{ $time }）から数えています。
wait-from-now = テキストに時刻の記載がないため、現在から数えています。
wait-date-from-text = 日付は、テキスト内の時刻（{ $time }）から判断しました。
wait-date-from-file = テキストに日付の記載がないため、ファイルの最終更新（{ $time }）から判断しました。
wait-date-from-now = テキストに日付の記載がないため、現在から見て次に来る時刻とみなしました。

## 読み取れない入力

explain-internal = AI プロバイダーの内部でエラーが発生しました。
input-stdin = 標準入力
input-empty = { $name }が空です。ログまたは応答の内容を渡してください。
input-binary = { $name }はテキストではありません（バイナリデータ、または UTF-8 以外の文字コードです）。Shift_JIS の場合は、先に変換してください: iconv -f CP932 -t UTF-8 FILE | koboshi { $command }（EUC の場合は -f EUC-JP、JIS の場合は -f ISO-2022-JP）
input-directory = { $name }を読み取れません。フォルダーです。
input-missing = { $name }を読み取れません。ファイルがありません。
input-denied = { $name }を読み取れません。読み取り権限がありません。
input-unreadable = { $name }を読み取れません: { $why }
case-written = { $file } に { $id } として書き込みました（現在の判定: { $got }）。キーは伏せてありますが、名前・ホスト名・番号はそのままです。人に渡す前に内容を確認してください。
case-known = すでに { $should } と判定されているため、何も書き込みませんでした。
case-label = 「{ $should }」は{ $form }のラベルではありません。次から選んでください: { $names }
case-form-log = ログ
case-form-tool = ツールの出力
case-form-answer = 応答
case-unwritable = { $name } に書き込めません: { $why }
case-id-taken = ID「{ $id }」はすでに使われています
case-label-unknown = 「{ $should }」というラベルはありません
case-secret = キーと思われる文字列が含まれています。先に伏せてください
case-added-right = { $id } → { $file }（正しく判定されます）
case-added-wrong = { $id } → { $file }（まだ別のものと判定されます）
cases-added = 追加: { $new } 件、登録済み: { $passed } 件
input-answer-too-long = 応答が長すぎるため、全体を判定できません。エラーを含む部分だけを渡してください。

## 記憶している状態

status-clear = すべてのターゲットを利用できます。
status-clear-store = 利用できないターゲットは、ストアに記録されていません。ゲートウェイだけが把握している状態は、次のコマンドで確認できます: koboshi status --url http://{ $address }
status-clear-stopped = 利用できないターゲットの記録はありません。ただし、ゲートウェイは停止しているため、リクエストには応答しません。
status-clear-silent = 利用できないターゲットの記録はありません。ただし、このストアに報告しているゲートウェイは現在ありません。
status-key-clear = { $key } 自体には、クールダウンも制限も記録されていません。関連するものを含むすべての状態は `koboshi status` で確認できます。
status-not-there = { $place } はありません。このストアはまだどのゲートウェイもエージェントも使っていないか、名前が間違っています。
status-nothing-known = まだ何も記録されていません（{ $place } がありません）。
status-store = ストア { $place } から読み込みました。
status-remote = ゲートウェイ { $place } から取得しました（ストア: { $store }）。
status-channel = 通知: チャンネル { $channel } に届いていません（送信待ち { $count } 件）
status-channel-last = 最後に届いた時刻: { $time }
status-channel-never = まだ一度も届いていません
status-channel-lost = 失われた通知: { $count } 件
status-channel-next = 次の再試行: { $time }
status-trouble = 現在ストアを読み取れないため、ゲートウェイ自身が把握している状態を表示しています: { $why }
status-configs-differ = ゲートウェイの設定が一致していません: { $gateways }。一致するまで、それぞれが自分の設定で動作します。
status-gateway-running = ゲートウェイ { $address } の最終報告は { $ago }前です。
status-gateway-silent = ゲートウェイ { $address } からの報告は { $time }が最後です。停止しているか、ストアに接続できていません。
status-gateway-stopped = ゲートウェイ { $address } は { $time }に停止しました。
status-no-gateway = このストアを使ったゲートウェイはまだありません。
status-until = { $time }まで（あと { $left }）
status-since = { $time }から
status-streak = 連続失敗 { $count } 回
status-openings = 連続で { $count } 回オープン
status-node = { $node } で検出
status-probing = 次の数件のリクエストで復旧を確認します
status-open-probes = ほかに使えるターゲットがないときは、確認のため一部のリクエストだけを通します
status-asks-again = 示された待ち時間がこれより長くても、この時刻以降にもう一度問い合わせます
status-due = 次のリクエストで復旧を確認します
status-due-run = 次の実行（またはリクエスト）で復旧を確認します（cooldown.min_run より短い実行は数えません）
status-resume = 原因を取り除いてから、次のコマンドで再開してください: { $command }
status-release = 次のコマンドで再開するまで使用されません: { $command }
status-unreadable = { $slot } の状態を読み取れませんでした（変更はしていません）: { $why }
state-parked = 停止中
state-cooling = クールダウン中
state-absent = 該当するモデルなし
state-held = 上限に到達
state-forced-open = ブレーカーを手動でオープン
state-open = ブレーカーがオープン
state-probing = ブレーカーが復旧を確認中
state-due = クールダウン終了
state-disabled = ブレーカーは無効
state-forced-closed = ブレーカーを手動でクローズ
breaker-consecutive = { $failed } 回連続で失敗
breaker-failure-rate = { $calls } 件中 { $failed } 件のリクエストが失敗
breaker-slow-rate = { $calls } 件中 { $failed } 件のリクエストで応答に遅延
breaker-warned = 別のゲートウェイのブレーカーがオープンした後に 1 回失敗
breaker-wait-over = オープン時間が経過
breaker-probe-failed = 確認用のリクエストが失敗
breaker-probes-succeeded = 確認用のリクエストが成功
breaker-forced = 管理者による設定
breaker-released = 管理者が解除
breaker-restored = 再起動前からオープン
limit-requests = リクエスト数の上限
limit-tokens = トークン数の上限
limit-input-tokens = 入力トークン数の上限
limit-output-tokens = 出力トークン数の上限
limit-concurrency = 同時リクエスト数の上限
limit-quota = 長期の利用枠
limit-operator = 管理者による設定
resume-done = { $key } を再び利用できるようにしました。
resume-done-partly = { $key } を再開しました。
resume-still-held = ただし、まだ利用できないものがあります（{ $key } が停止中またはクールダウン中のため）。こちらも再開するには: { $command }
resume-nothing = { $key } に対するクールダウン、停止、制限はなく、ブレーカーもオープンではありません。再開するものはありませんでした。
resume-looked-in = 調べたストア: { $place }。別のストアを使うゲートウェイの場合は、--store でストアを、または --url でアドレスを指定してください。
resume-asked = 問い合わせたゲートウェイ: { $place }。
resume-all-nothing = クールダウン中または停止中のものはなく、オープンのブレーカーもないため、再開するものはありません。
resume-above = { $key } が原因で利用できません。次のコマンドで再開できます: { $command }
cool-done = { $key } をクールダウン状態にしました: { $until }
config-left-out = 設定ファイルに誤りがあるため、組み込みのルール、モデル、コードだけを使って続行します。設定ファイルの誤り:
config-unusable = 設定ファイルを使用できません（`{ $check }` ですべて確認できます。別のファイルは --config で指定できます）:
cool-past = { $time }は過去の時刻です。クールダウンを終えるには: { $command }
key-unknown = { $key } に該当するターゲットはありません。
key-unknown-agent = { $key } に該当するエージェントはありません。設定にそのエージェントとプロジェクトの組がなく、ストアにも記録がありません。
key-unchanged = 何も変更していません。
key-near = 次のいずれかではありませんか？ { $near }
key-force-agent = この指定で間違いない場合は --force を付けてください。
key-force = まだリクエストのないモデルなど、この指定で間違いない場合は --force を付けてください。
key-unknowable = キー { $key } を持つターゲットがあるか確認できません。設定ファイルが見つからず、このストアを使ったゲートウェイもありません。--config で設定ファイルを、または --url でゲートウェイを指定するか、--force を付けてください。
journal-unknown-kind = `{ $kind }` は、エラーの種類にも記録の種類にもありません。使えるのは次のとおりです: { $known }
journal-empty = 該当する記録はありません。
journal-pruned = 削除した記録: { $count } 件
journal-fault = 障害
journal-remedy = 対処
journal-breaker = ブレーカー
journal-gate = 流量制御
journal-cooldown = クールダウン
journal-lease = リース
journal-store = ストア
journal-operator = 管理者
journal-run = 実行
journal-budget = 予算
time-no-instant = `{ $text }` をタイムゾーン付きの時刻として読み取れません。2026-11-15T12:00:00Z、2026-11-15T12:00:00+09:00、2026-11-15T12:00:00[Asia/Tokyo] のように書いてください。
time-no-length = `{ $text }` を時間の長さとして読み取れません。30s、45m、2h、1d のように書いてください。
time-too-long = { $text } は長すぎます。365 日以内にするか、--until で終了日時を指定してください。
time-zero-length = `{ $text }` は 0 です。0 より長い時間を書いてください。
time-neither = `{ $text }` を時間の長さとしても時刻としても読み取れません。2h や、タイムゾーン付きの 2026-11-15T12:00:00Z のように書いてください。
key-of-one-process = { $key } は 1 台のマシンのネットワークについてのキーです。そのマシンのプロセスだけが管理しているため、ここからは設定できません。
store-memory = メモリ（再起動すると消えます）
store-redis = Redis サーバー（{ $address }）

## 端末の一画面

top-no-terminal = `koboshi top` は端末に描画しますが、標準入力または標準出力が端末ではありません。一度だけ表示するには `koboshi status` または `koboshi top --format json` を使ってください。
top-reading = 読み込んでいます…
top-up = 稼働 { $length }
top-ago = { $length }前
top-until = { $time }まで
top-available = 利用可能
top-no-record = 記録なし
top-requests = リクエスト { $rate }/秒
top-faults = 障害 { $rate }/秒
top-open = 処理中 { $count }
top-survived = 起動後: 乗り越えた障害 { $survived }、エラー { $seen }
top-store-alone = リクエスト数はゲートウェイだけが数えています（--url）
top-old = { $time }時点の内容です: { $why }
top-dead = { $routes } に使えるターゲットがありません
top-down = { $count } 件が利用できません。どのルートにもターゲットが残っています。
top-clear-store = 利用できないものはストアに記録されていません。
top-targets = ターゲット: { $all } 件中 { $down } 件が利用不可
top-last-faults = 最近の障害
top-agents = エージェント: { $all } 件中 { $running } 件が実行中
top-no-targets = ターゲットはまだありません。このストアを使ったゲートウェイがないか、設定にルートがありません。
top-no-faults = 障害の記録はありません。
top-resume = 再開するコマンド: { $command }
top-keys = q 終了   ↑ ↓ 選択   tab 次の一覧

## スーパーバイザーのログに残る理由

reason-quota = 利用枠の使い切り
reason-billing = 残高不足または支出の上限
reason-rate-limit = 短時間のリクエスト数またはトークン数の超過
reason-overloaded = プロバイダーの過負荷または停止
reason-auth = 認証エラーまたは権限不足
reason-status-401 = プロバイダーが 401 を返した（理由は不明）
reason-status-402 = プロバイダーが 402 を返した（理由は不明）
reason-status-403 = プロバイダーが 403 を返した（理由は不明）
reason-key = API キーが無効
reason-sign-in = サインインの期限切れ
reason-permission = 権限不足
reason-region = この国または地域では利用不可
reason-blocked = プロバイダーの手前のファイアウォールまたは CDN によるブロック
reason-model = このアカウントでは使えないモデル
reason-plan = アカウントのプランの対象外
reason-context = 会話が長すぎる
reason-network = ネットワークの障害
reason-error = その他のエラー
reason-starts = 短い時間に起動を繰り返した
reason-operator = 管理者による設定
reason-none = 障害なし

## ループの検出。何が繰り返され、何をすればよく、何を尋ねるか。note はモデル向け

guard-what-similar-errors = 同じエラーが { $count } 回続けて発生しました（{ $tools }）。
guard-what-alternating-errors = 同じ数種類のエラーが交互に発生しています。そのうちの 1 つは { $count } 回目です（{ $tools }）。
guard-what-any-errors = { $count } 回続けて失敗しました。エラーの内容はそれぞれ異なります（{ $tools }）。
guard-what-same-call = 同じ呼び出しに同じ結果が { $count } 回返りました（{ $tools }）。
guard-what-cycle = 同じ一連の呼び出しが、同じ結果で { $count } 回繰り返されました（{ $tools }）。
guard-what-stagnation = 引数を変えて { $count } 回試しましたが、いずれも中身のない結果でした（{ $tools }）。
guard-what-depth = 1 回のやり取りで許されるツール呼び出しの回数を超えました。1 つのメッセージに対するツール呼び出しは { $limit } 回までですが、{ $responses } 回の応答で { $calls } 回になりました。
guard-what-width = 1 回の応答で { $count } 個のツールが同時に呼び出されました。上限は { $limit } 個です。
guard-label-example = 返ってきた結果の例:
guard-label-steps = 次にできること:
guard-step-use-installed = インストール済みのもの（ライブラリ、コマンド、フォント）をエージェントに確認させ、その中から選ばせてください。
guard-step-name-versions = 変更してはいけないバージョンをエージェントに伝え、もう一方を変更させてください。
guard-step-other-place = エージェントが使ってよい場所（フォルダー、リポジトリ、プロジェクトなど）を伝えてください。
guard-step-free-room = メモリとディスクの空き容量を確認し、前の試行で残ったプロセスを終了してください。
guard-step-figure-to-file = グラフはファイルに出力するよう指示してください。ディスプレイは不要です。
guard-step-list-first = ファイルを開く前に、エージェントにフォルダーの中身を確認させてください。
guard-step-check-service = ツールが動いているマシンから、そのサービスが応答するか確認してください。
guard-step-smaller = 作業を小さく分けて依頼してください。
guard-step-show-place = 書き直す前に、該当箇所の前後をエージェントに表示させてください。
guard-step-print-values = 扱っている値と型を、エージェントに出力させてください。
guard-step-give-example = 正しい呼び出しの例を 1 つ、エージェントに示してください。
guard-step-read-again = エージェントにファイルを読み直させ、置き換える文字列をそこからコピーさせてください。
guard-step-sign-in = この会話の外で、サインインし直すか API キーを更新してください。
guard-step-wait-then-go-on = 数分待ってから、続けるよう伝えてください。
guard-step-name-tools = 使えるツールをエージェントに伝えてください。
guard-step-one-test = 失敗しているテストを、エージェントに 1 つずつ修正させてください。
guard-step-other-words = 別の検索語か、別の検索場所を伝えてください。
guard-step-say-what-is-known = これまでに分かったことと足りない情報を、エージェントにまとめさせてください。
guard-step-go-on = 順調に進んでいた場合は、続けるよう伝えてください。回数は最初から数え直されます。
guard-step-raise-limit = このような長い作業が普段から必要な場合は、設定で上限を増やしてください。
guard-step-other-way = 別の方法で進めるよう依頼してください。
guard-question-fix-or-other-way = 先に原因を取り除きますか。それとも、エージェントに別の方法を試させますか。
guard-question-what-next = エージェントに、何を変えて進めさせますか。
guard-question-go-on = エージェントに続けさせますか。
guard-note-errors = { $tools } が同じメッセージで { $count } 回失敗しました: { $pattern }。同じ呼び出しを繰り返しても成功しません。まず原因を調べるか、別の方法を選んでください。次に同じ失敗をすると、同じ呼び出しは拒否されます。
guard-note-repeats = { $tools } の呼び出しに、同じ結果が { $count } 回返っています。繰り返しても新しい情報は得られません。すでに分かっていることを使うか、別の方法を選んでください。このまま続けると、同じ呼び出しは拒否されます。
guard-note-depth = このメッセージに対するツール呼び出しは { $calls } 回に達しました。上限は { $limit } 回です。これまでに分かったことから、今すぐ回答してください。
guard-note-errors-only = { $tools } が同じメッセージで { $count } 回失敗しました: { $pattern }。同じ呼び出しを繰り返しても成功しません。まず原因を調べるか、別の方法を選んでください。
guard-note-repeats-only = { $tools } の呼び出しに、同じ結果が { $count } 回返っています。繰り返しても新しい情報は得られません。すでに分かっていることを使うか、別の方法を選んでください。
guard-note-depth-only = このメッセージに対するツール呼び出しは { $calls } 回です。通常は { $limit } 回で足ります。どうしても必要なものがなければ、これまでに分かったことから回答してください。
guard-note-width = 1 回の応答で { $count } 個のツールが同時に呼び出されました。上限は { $limit } 個です。一度に呼び出す数を減らしてください。
guard-note-width-only = 1 回の応答で { $count } 個のツールが同時に呼び出されました。通常は { $limit } 個で足ります。一度に呼び出す数を減らしてください。
guard-note-stop = このメッセージに対しては、これ以上ツールを呼び出せません。試したこと、妨げになっていること、これまでに分かったことを短く利用者に伝え、どう進めるかを尋ねてください。
guard-note-stop-but = このメッセージに対しては、{ $others } 以外のツールはこれ以上呼び出せません。試したこと、妨げになっていること、これまでに分かったことを利用者に伝えるか、これらのツールで助けを求めるか、作業を終えてください。
guard-note-forbids-calls = { $tools } を { $count } 回呼び出しましたが、進展がありません。今後、同じ引数での同じ呼び出しは拒否されます。すでに分かっていることを使うか、別の方法を選ぶか、利用者に尋ねるか、作業を終えてください。
guard-note-forbids-tools = { $tools } を { $count } 回呼び出しましたが、進展がないため、{ $tools } の呼び出しは当面拒否されます。ほかのツールは使えます。別の方法を選ぶか、利用者に尋ねるか、作業を終えてください。
guard-refused-call = この呼び出しは拒否され、実行されませんでした。同じ引数での同じ呼び出しが何度も繰り返され、結果が変わらなかったためです。すでに分かっていることを使う、別の方法を選ぶ、利用者に尋ねる、作業を終える、のいずれかにしてください。
guard-refused-tool = この呼び出しは拒否され、実行されませんでした。{ $tools } を何度呼び出しても進展がなかったためです。ほかのツールを使うか、利用者に尋ねるか、作業を終えてください。
guard-refused-turn = この呼び出しは拒否され、実行されませんでした。このメッセージに対しては、これ以上ツールを呼び出せません。今すぐ利用者に回答してください。
guard-refused-turn-but = この呼び出しは拒否され、実行されませんでした。このメッセージに対して呼び出せるのは { $others } だけです。これらを使うか、今すぐ利用者に回答してください。
guard-refused-beside = 同じ応答の別の呼び出しが拒否されたため、この呼び出しは実行されませんでした。まだ必要であれば、もう一度呼び出してください。

## koboshi guard replay

guard-replay-run = { $id }（{ $calls } 回の呼び出し）
guard-replay-note = 注意
guard-replay-stop = 停止
guard-replay-said = { $at } 回目の呼び出しの後、ターン { $turn }、{ $rule }: { $why }
guard-replay-sum = { $runs } 件の実行、{ $calls } 回の呼び出し: 注意があったのは { $noted } 件、停止があったのは { $stopped } 件
guard-replay-sum-of-one = 1 件の実行、{ $calls } 回の呼び出し: 注意があったのは { $noted } 件、停止があったのは { $stopped } 件
guard-replay-empty = ファイルが空です。実行記録がありません。
guard-replay-progress = { $runs } 件の実行、{ $calls } 回の呼び出し、{ $megabytes } MB …
guard-replay-no-json = JSON ではありません: { $detail }
guard-replay-no-form = 既知の形式の実行記録ではありません。メッセージの一覧、Codex のロールアウト、Claude Code のセッション、`calls` を持つオブジェクトのいずれかが必要です
guard-replay-no-calls = `calls` を読み取れません: { $detail }
guard-replay-no-messages = メッセージを読み取れません: { $detail }
guard-replay-long-line = この行は 128 MiB を超えています
guard-replay-no-text = この行は UTF-8 のテキストではありません
guard-replay-unreadable = これ以上読み取れません: { $detail }

## koboshi check

check-good = 問題ありません
check-one-warning = （警告 1 件）
check-warnings = （警告 { $count } 件）
check-warning = 警告:
check-no-file = 設定ファイルがないため、すべて既定値を使います（探した場所: { $places }）
check-all-defaults = すべて既定値です。
check-differs = 既定値と異なる設定:
check-default = （既定値: { $value }）
check-one-problem = 問題が 1 件あります
check-problems = 問題が { $count } 件あります
check-not-shown = （うち { $count } 件は省略）
check-described = 。設定項目の説明は docs/config.md にあります。

## koboshi models

models-built-in = 内蔵（models.yaml:{ $line }）
models-assumed = 不明のため既定値
models-unknown = このモデルの情報がないため、すべて既定値です。追加の方法は docs/models.md にあります。
models-none-named = 設定にモデル名がありません。koboshi models NAME のように指定してください。次の形の名前を認識します:

## koboshi init

init-done = { $place } を書き出しました。
init-found = 環境変数で見つかった API キー: { $names }
init-keyless = キーなしで使うプロバイダー: { $names }
init-none = 使えるプロバイダーがまだないため、模擬プロバイダーが応答するデモ用のルートを書きました。
init-next = 次に `{ $check }` で確認し、`{ $serve }` を起動してください。
init-folder = { $place } はフォルダーです。{ $file } のようにファイル名まで指定してください。
init-there = { $place } はすでにあるため、変更していません。上書きするには --force、新しい内容を見るには --print を付けてください。
init-cannot-write = { $place } に書き込めません: { $reason }
init-ask-language = コメントの言語（en または ja） [{ $default }]:
init-ask-providers = どのプロバイダーを使いますか？ 番号か名前をカンマ区切りで入力してください（使わない場合は `none`） [{ $default }]:
init-ask-found = キーあり
init-ask-keyless = キー不要
init-ask-missing = { $name } が未設定
init-ask-none = なし
init-ask-unknown = `{ $name }` は一覧にありません。
init-unknown-provider = `{ $name }` は init の対象にないプロバイダーです。使えるもの: { $known }
init-without-key = 環境変数が未設定か、使えない値のため、まだ有効にしていません: { $names }。環境変数を設定してから、ファイルの `#` を外してください。

## koboshi import

import-there = { $place } はすでにあるため、変更していません。上書きするには --force を付けるか、別のファイルを指定してください。
import-done = { $place } を書き出しました。次に環境変数を設定し、`{ $check }` で確認してから `{ $serve }` を起動してください。
import-left = 変換できません:
import-changed = 動作が異なります:
import-todo = 要対応:
import-variables = 起動前に設定する環境変数: { $names }

## koboshi repair

repair-too-long = { $name }は、呼び出しの引数としては長すぎます。
repair-not-json = { $name }は JSON ではありません: { $why }
repair-not-schema = { $name }は JSON Schema として使えません: { $why }
repair-finish-unknown = --finish { $reason } は未知の値のため、結果に影響しません。使える値: { $known }
repair-changed = { $what }（{ $name }、{ $line } 行目 { $column } 文字目）: { $said }
repair-refused = { $what }（{ $name }、{ $line } 行目 { $column } 文字目）
repair-refused-label = 拒否:
repair-detail = 詳細（英語）: { $reason }

repair-change-outside-dropped = オブジェクトの前後の文章を除きました
repair-change-blank-dropped = JSON にない空白文字を除きました
repair-change-comment-dropped = コメントを除きました
repair-change-key-quoted = キーを引用符で囲みました
repair-change-word-quoted = 引用符のない単語を引用符で囲みました
repair-change-quotes-changed = 別の引用符を二重引用符として読みました
repair-change-quotes-escaped = 文字列の中の引用符をエスケープしました
repair-change-controls-escaped = 文字列の中の制御文字をエスケープしました
repair-change-apostrophe-unescaped = エスケープされたアポストロフィをそのまま読みました
repair-change-backslashes-escaped = エスケープではないバックスラッシュを残しました
repair-change-string-form-read = 別の記法の文字列を読みました
repair-change-strings-joined = 「+」でつながれた文字列を 1 つにしました
repair-change-separator-read = 別の区切り文字をコロンまたはカンマとして読みました
repair-change-bracket-read = 別の括弧を JSON の括弧として読みました
repair-change-colon-added = 足りないコロンを補いました
repair-change-comma-added = 足りないカンマを補いました
repair-change-comma-dropped = 余分なカンマを除きました
repair-change-literal-read = Python のリテラルを読みました
repair-change-tuple-read = タプルを配列として読みました
repair-change-number-read = 別の記法の数値を読みました
repair-change-duplicate-dropped = 同じ値で 2 回あるキーを 1 つにしました
repair-change-object-closed = オブジェクトの閉じ括弧を補いました
repair-change-closer-dropped = 余分な閉じ括弧を除きました
repair-change-mark-added = 不足している記号を補いました
repair-change-mark-dropped = 余分な記号を取り除きました
repair-change-mark-exchanged = 記号を、対応する別の記号として読み取りました
repair-change-string-unwrapped = 文字列に入っていた引数を取り出しました
repair-change-list-unwrapped = リストに入っていた引数を取り出しました
repair-change-envelope-unwrapped = 名前と引数を持つオブジェクトから引数を取り出しました
repair-change-markup-read = タグで書かれた引数を読みました
repair-change-call-read = 呼び出しの形で書かれた引数を読みました
repair-change-others-dropped = 複数のオブジェクトのうち、スキーマに合う 1 つだけを残しました
repair-change-empty-read = 空のテキストを引数なしとして読みました
repair-change-to-number = スキーマに合わせて文字列を数値にしました
repair-change-to-boolean = スキーマに合わせて文字列を真偽値にしました
repair-change-to-text = スキーマに合わせて数値を文字列にしました
repair-change-to-array = スキーマに合わせて値を要素 1 つの配列にしました
repair-change-decoded = 文字列に入っていた配列またはオブジェクトを取り出しました
repair-change-enum-case = スキーマにある大文字・小文字に合わせました
repair-change-null-dropped = スキーマが認めない null を除きました

repair-defect-unreadable = JSON としても、ほかの既知の記法としても読み取れません
repair-defect-cut = テキストが途中で終わっています
repair-defect-cut-by-limit = 出力の上限により、テキストが途中で切れています
repair-defect-ambiguous = 読み方が 1 つに決まりません
repair-defect-bad-escape = バックスラッシュの読み方が 1 つに決まりません
repair-defect-bad-number = 数値の読み方が 1 つに決まりません
repair-defect-missing-value = 値がありません
repair-defect-duplicate-key = 同じキーが異なる値で 2 回あります
repair-defect-several-objects = 1 回の呼び出しにオブジェクトが複数あります
repair-defect-not-an-object = 引数が JSON オブジェクトではありません
repair-defect-empty = 引数がありません
repair-defect-other-tool = 別のツールの引数です
repair-defect-schema = 引数がスキーマに合っていません
repair-defect-too-deep = 引数の入れ子が深すぎます
repair-defect-too-long = 引数が長すぎます

## koboshi serve

serve-listens = Koboshi は { $place } で待ち受けています
serve-listens-everywhere = Koboshi は { $place } と、このマシンのほかのすべてのアドレスで待ち受けています
serve-label-providers = プロバイダー
serve-label-config = 設定
serve-label-store = ストア
serve-no-config = なし（既定値と環境変数を使います）
serve-try = 試してみるには:
serve-try-simulated = 試すには（sim/ok には模擬プロバイダーが応答します。実際の応答を得るには、プロバイダーのモデルを PROVIDER/MODEL の形で指定してください）:

## ゲートウェイ自身が断るリクエスト（プロバイダーには送っていません）

provider-internal =
    .message = AI プロバイダーで内部エラーが発生しました。
    .suggestion = しばらくしてからもう一度お試しください。問題が続く場合は、プロバイダーの稼働状況を確認してください。
refused-path =
    .message = { $method } { $path } は Koboshi では提供していません。
    .suggestion = base_url とパスを確認してください。利用できるエンドポイントは次のとおりです: { $served }。
refused-path-doubled =
    .message = { $method } { $path } は Koboshi では提供していません。パスにバージョンが二重に入っています。
    .suggestion = base_url の末尾からバージョンを取り除き、リクエストが { $near } に届くようにしてください。
refused-chat-off =
    .message = このゲートウェイでは、チャット画面が有効になっていません。
    .suggestion = ゲートウェイを koboshi serve --chat で起動するか、設定ファイルで serve.chat を有効にしてから、もう一度 /chat/ を開いてください。
refused-admin-path =
    .message = 管理用 API に { $method } { $path } というエンドポイントはありません。
    .suggestion = 管理用 API のエンドポイントは GET /koboshi/openapi.json で確認できます。
refused-method =
    .message = { $path } は { $method } に対応していません。
    .suggestion = このパスには { $allow } を使ってください。
refused-deadline =
    .message = ヘッダー x-koboshi-deadline の値を時間として読み取れません。
    .suggestion = 30s、1500ms、30（秒）のように指定するか、ヘッダーを外してください。
refused-content-type =
    .message = リクエスト本文は JSON で送信する必要があります。
    .suggestion = Content-Type ヘッダーを application/json にして、もう一度送信してください。
refused-model-path =
    .message = パスにモデル名がありません。
    .suggestion = /v1beta/models/MODEL:generateContent の形で指定してください。
refused-upgrade =
    .message = このパスは WebSocket 接続用ですが、リクエストは WebSocket のハンドシェイクではありません。
    .suggestion = ブラウザーの new WebSocket(...) などの WebSocket クライアントで接続してください。プロトコルは docs/sessions.md にあります。
refused-key-missing =
    .message = この Koboshi ゲートウェイを使うにはキーが必要ですが、リクエストにキーがありません。
    .suggestion = ゲートウェイ自身のキー（ゲートウェイの設定ファイルの keys に登録したもの）を、Bearer トークン、x-api-key、x-goog-api-key のいずれかで送信してください。AI プロバイダーの API キーは使えません。
refused-key-unknown =
    .message = リクエストのキーは、この Koboshi ゲートウェイのキーではありません。
    .suggestion = ゲートウェイの管理者が設定ファイルの keys に登録したキーを使ってください。AI プロバイダーの API キーは Koboshi が保持しているため、ここでは使えません。
refused-key-route =
    .message = このキーでは、モデル { $model } を使えません。
    .suggestion = このキーで使えるモデルを選ぶか（GET /v1/models に一覧があります）、ゲートウェイの管理者に、キーの routes への追加を依頼してください。
refused-budget-day =
    .message = このキーの 1 日の予算（{ $limit }）を使い切りました。ゲートウェイ自身がリクエストを断っており、プロバイダーには送っていません。
    .suggestion = 予算は { $until } に更新されます。ゲートウェイの管理者は、設定ファイルの keys で予算を増やせます。
refused-budget-month =
    .message = このキーの 1 か月の予算（{ $limit }）を使い切りました。ゲートウェイ自身がリクエストを断っており、プロバイダーには送っていません。
    .suggestion = 予算は { $until } に更新されます。ゲートウェイの管理者は、設定ファイルの keys で予算を増やせます。
refused-rate =
    .message = このキーで 1 分間に送れるリクエスト数（{ $rate }）に達しました。ゲートウェイ自身がリクエストを断っており、プロバイダーには送っていません。
    .suggestion = { $seconds } 秒後に、もう一度送信してください。ゲートウェイの管理者は、設定ファイルの keys で上限を増やせます。
refused-admin-key =
    .message = このゲートウェイの管理用キーがないか、間違っています。
    .suggestion = 管理用キー（ゲートウェイの設定ファイルの admin.sha256 にハッシュを登録したもの）を Bearer トークンとして送信してください。クライアント用のキーや AI プロバイダーの API キーは使えません。
refused-admin-local =
    .message = 管理用キーが設定されていないため、管理用 API はゲートウェイと同じマシンからしか使えません。
    .suggestion = ゲートウェイの設定ファイルに admin.sha256 を設定してそのキーを Bearer トークンとして送信するか、ゲートウェイのマシンから呼び出してください。
refused-admin-unset =
    .message = このゲートウェイではクライアントにキーが必要なため、管理用 API にも管理用キーが必要ですが、設定されていません。
    .suggestion = ゲートウェイの設定ファイルに admin.sha256 を設定し、そのキーを Bearer トークンとして送信してください。
refused-csrf =
    .message = ブラウザーからの変更は、このゲートウェイ自身のダッシュボードから、そのトークンを付けて送る必要があります。
    .suggestion = このゲートウェイの /koboshi/ を開き直して、もう一度操作してください。プログラムからは、代わりに管理用キーを Bearer トークンとして送ってください。
refused-no-host =
    .message = このゲートウェイを動かしているプログラムには、この機能がありません。
    .suggestion = koboshi serve または koboshi up でゲートウェイを起動してください。
refused-host-failed =
    .message = 実行できませんでした（{ $why }）。
    .suggestion = もう一度お試しください。続く場合は、ゲートウェイのログを確認してください。
refused-metrics =
    .message = メトリクスの取得には管理用キーが必要です。キーなしで取得できるのは、keys を設定していないゲートウェイと同じマシンからだけです。
    .suggestion = 管理用キーを Bearer トークンとして送信するか（ゲートウェイの設定ファイルの admin.sha256 にそのハッシュを書きます）、serve.public_metrics を設定してください。
refused-host-count =
    .message = リクエストには、ホスト名を 1 つだけ指定する必要があります。
    .suggestion = Host ヘッダーを 1 つだけ送信してください。URL にもホスト名がある場合は、同じものにしてください。
refused-content-encoding =
    .message = リクエスト本文が圧縮されています（{ $encoding }）。このゲートウェイは圧縮された本文を読み取れません。
    .suggestion = Content-Encoding ヘッダーを付けずに、圧縮していない本文を送信してください。
refused-stopping =
    .message = ゲートウェイが停止または再起動されるところです。
    .suggestion = しばらくしてから、もう一度送信してください。
refused-memory =
    .message = 現在、ゲートウェイが処理している大きなリクエストが多すぎます。
    .suggestion = 少し待ってから、もう一度送信してください。繰り返す場合は、ゲートウェイの設定ファイルの serve.memory を大きくしてください。
refused-busy =
    .message = ゲートウェイで読み込みを待っている大きなリクエストが多すぎます。
    .suggestion = 少し待ってから、もう一度送信してください。繰り返す場合は、同時に送信する大きなリクエストの数を減らしてください。
refused-origin =
    .message = { $origin } の Web ページからこのゲートウェイを呼び出すことはできません。
    .suggestion = ご自身のページであれば、そのオリジンをゲートウェイの設定ファイルの serve.allowed_origins に追加してください。
refused-host =
    .message = このゲートウェイは { $host } という名前では応答しません。
    .suggestion = localhost か 127.0.0.1 で呼び出すか、その名前をゲートウェイの設定ファイルの serve.allowed_hosts に追加してください。
refused-model =
    .message = モデル { $model } に対応するルートもプロバイダーも、このゲートウェイにはありません。
    .suggestion = つづりを確認するか、「プロバイダー名/モデル名」の形で指定するか、ゲートウェイの設定ファイルにルートを追加してください。利用できる名前は GET /v1/models で確認できます。
refused-model-long =
    .message = モデル名が { $limit } バイトを超えています。そのような名前のモデルはありません。
    .suggestion = プログラムが model に何を指定しているかを確認してください。利用できる名前は GET /v1/models で確認できます。
refused-model-near =
    .message = モデル { $model } に対応するルートもプロバイダーも、このゲートウェイにはありません。
    .suggestion = { $near } のことでしょうか。そうでなければ、provider/model の形で指定するか、ゲートウェイの設定ファイルにルートを追加してください。使える名前は GET /v1/models で確認できます。
refused-no-provider =
    .message = このゲートウェイには AI プロバイダーが設定されていないため、モデル { $model } には応答できません。
    .suggestion = OPENAI_API_KEY、ANTHROPIC_API_KEY、GEMINI_API_KEY のいずれかを設定してゲートウェイを再起動するか、koboshi.yaml にプロバイダーを追加してください（koboshi init で作成できます）。API キーなしで試すには、モデル sim/ok を指定するか、koboshi serve --demo で起動してください。
refused-only-simulated =
    .message = このゲートウェイには模擬プロバイダーしか設定されていないため、モデル { $model } には応答できません。
    .suggestion = ゲートウェイの設定ファイルの providers に、AI プロバイダーとその API キーを追加してください。設定ファイルにプロバイダーが書かれているときは、環境変数の API キーだけではプロバイダーは追加されません。API キーなしで試すには、モデル sim/ok を指定してください。
refused-body =
    .message = リクエスト本文を処理できません（{ $why }）。
    .suggestion = 本文を修正して、もう一度送信してください。
refused-body-empty =
    .message = リクエスト本文が空です。
    .suggestion = リクエストを 1 つの JSON オブジェクトとして送信してください。
refused-body-cut =
    .message = リクエスト本文の JSON が { $line } 行目の { $column } 列目で途切れています。
    .suggestion = 本文が最後まで送信されているか、括弧と引用符がすべて閉じているかを確認してください。
refused-body-not-json =
    .message = リクエスト本文が正しい JSON ではありません。{ $line } 行目の { $column } 列目に誤りがあります。
    .suggestion = その箇所を修正して、もう一度送信してください。
refused-body-not-utf8 =
    .message = リクエスト本文が正しい UTF-8 ではありません（{ $at } バイト目）。
    .suggestion = 本文を UTF-8 にして、もう一度送信してください。
refused-body-not-object =
    .message = リクエスト本文は 1 つの JSON オブジェクトでなければなりません。
    .suggestion = 配列や単独の値ではなく、オブジェクトを送信してください。
refused-body-too-deep =
    .message = リクエスト本文の JSON の入れ子が { $limit } 段を超えています。
    .suggestion = 配列とオブジェクトの入れ子を浅くして、もう一度送信してください。
refused-body-large =
    .message = リクエスト本文が、このゲートウェイの上限（{ $limit }）を超えています。
    .suggestion = ファイルやメッセージを減らすか小さくするか、ゲートウェイの設定ファイルの serve.max_body_bytes を大きくしてください。
refused-body-slow =
    .message = リクエスト本文が制限時間内に届きませんでした。
    .suggestion = クライアントの接続を確認して、もう一度送信してください。
refused-body-broken =
    .message = リクエスト本文が最後まで届きませんでした。
    .suggestion = 本文全体を、もう一度送信してください。
refused-field-missing =
    .message = リクエスト本文に { $field } がありません。
    .suggestion = { $field } を追加して、もう一度送信してください。
refused-field-twice =
    .message = リクエスト本文に { $field } が 2 回出てきます。
    .suggestion = どちらの値を使うか決められないため、1 回だけ指定してください。
refused-field-type =
    .message = { $field } には{ $expected }を指定してください。
    .suggestion = { $field } を修正して、もう一度送信してください。
refused-field-unknown =
    .message = { $field } という項目はありません。
    .suggestion = この項目を取り除いてください。使える項目は GET /koboshi/openapi.json で確認できます。
refused-item-type =
    .message = { $field } はオブジェクトでなければなりません。
    .suggestion = { $field } を修正して、もう一度送信してください。
refused-order =
    .message = リクエスト本文がこのエンドポイントの形式に合っていません（{ $line } 行目の { $column } 列目）。
    .suggestion = 形式は GET /koboshi/openapi.json で確認できます。
refused-order-large =
    .message = リクエスト本文が、管理用 API の上限（{ $limit }）を超えています。
    .suggestion = 本文を短くして、もう一度送信してください。
refused-target =
    .message = { $target } というターゲットはありません。
    .suggestion = ターゲットとそのキーは GET /koboshi/targets で確認できます。
refused-scope-key =
    .message = { $key } は、Koboshi が状態を記録している対象の名前ではありません。
    .suggestion = provider:openai や target:openai/gpt-4o のように、種類と名前を指定してください。キーの一覧は GET /koboshi/keys で確認できます。
refused-scope-unknown =
    .message = { $key } に該当するターゲットはありません。
    .suggestion = キーの一覧は GET /koboshi/keys で確認できます。それでも実行する場合は force を指定してください。
refused-scope-near =
    .message = { $key } に該当するターゲットはありません。
    .suggestion = 近いキーは { $near } です。一覧は GET /koboshi/keys で確認できます。それでも実行する場合は force を指定してください。
refused-until =
    .message = until には未来の日時を指定してください。
    .suggestion = 2030-01-31T12:00:00Z のように指定してください。
refused-query =
    .message = { $field } というクエリパラメーターはありません。
    .suggestion = 次のいずれかを使ってください: { $known }。
refused-query-choice =
    .message = クエリパラメーター { $field } の値が正しくありません。
    .suggestion = 次のいずれかを指定してください: { $known }。
refused-query-number =
    .message = クエリパラメーター { $field } には 1 から { $limit } までの数を指定してください。
    .suggestion = 値を修正して、もう一度送信してください。
refused-query-day =
    .message = アドレスの { $field } が日付ではないか、日付の順序が逆です。
    .suggestion = 2026-11-18 の形で日付を書き、早いほうを from にしてください。
refused-query-time =
    .message = クエリパラメーター { $field } の値は、日時としても時間の長さとしても読み取れません。
    .suggestion = 日時は 2030-01-31T12:00:00Z、時間の長さは 2h のように指定してください。
refused-feed-full =
    .message = フィードを受信しているクライアントが多すぎます。
    .suggestion = いずれかを閉じてから、もう一度お試しください。
refused-agents-none =
    .message = このゲートウェイはエージェントを管理していません。
    .suggestion = ゲートウェイとエージェントを 1 つのプロセスで動かすには koboshi up を使ってください。koboshi supervise の場合は、そのマシンで --url を付けずに実行してください。
refused-agent-name =
    .message = エージェントの名前がないか、長すぎるか、指定できない操作です。
    .suggestion = agent/project の形で書いてください。一覧は GET /koboshi/agents で確認できます。
refused-agent-unknown =
    .message = { $agent } というエージェントはありません。
    .suggestion = 一覧は GET /koboshi/agents で確認できます。
refused-agent-near =
    .message = { $agent } というエージェントはありません。
    .suggestion = あるのは { $known } です。
refused-agent-project =
    .message = { $agent } には複数のプロジェクトがあります。
    .suggestion = { $known } のいずれかを指定してください。
refused-agent-run =
    .message = { $agent } にそのような実行はありません。
    .suggestion = 保存されているのは { $count } 件です。1 が最新です。
refused-agent-place =
    .message = { $field } を読み取れません。
    .suggestion = run は番号または実行の ID、from は前の応答の next の値を指定してください。
refused-agents-away =
    .message = スーパーバイザーが応答しません（{ $why }）。
    .suggestion = 少し待ってから、もう一度お試しください。
refused-store =
    .message = ストアを読み取れません（{ $why }）。
    .suggestion = このゲートウェイのストアを確認してから、もう一度お試しください。接続の状態は GET /ready で確認できます。
refused-internal =
    .message = Koboshi の内部でエラーが発生しました。
    .suggestion = もう一度お試しください。続く場合は、リクエスト ID を添えて報告してください。

expected-model-name = モデル名の文字列
expected-true-or-false = 真偽値（true か false）
expected-messages = メッセージの配列
expected-contents = コンテンツの配列
expected-text-or-items = 文字列かアイテムの配列
expected-count = 1 以上の整数
expected-level = 0 以上の数値

## ゲートウェイの準備ができているか

ready-no-provider =
    .message = AI プロバイダーが設定されていません。応答できるのは sim/… という名前のモデルだけです。
    .suggestion = OPENAI_API_KEY、ANTHROPIC_API_KEY、GEMINI_API_KEY のいずれかを設定してゲートウェイを再起動するか、koboshi.yaml にプロバイダーを追加するか（koboshi init で作成できます）、koboshi serve --demo で起動してください。
ready-store =
    .message = ストアの読み込みがまだ終わっていません。
    .suggestion = しばらくお待ちください。この状態が続く場合は、この応答の store.error で原因を確認してください。

## GET /

root-about = Koboshi は動作しています。AI API 用のゲートウェイです。プログラムは AI プロバイダーの代わりに Koboshi を呼び出します。Koboshi は失敗したリクエストを再試行し、必要に応じてほかのプロバイダーに切り替え、途切れたストリームを続きから再開します。
root-dashboard = 運用者向けのダッシュボードは /koboshi/ にあります。
root-chat = 運用者向けのダッシュボードは /koboshi/ に、チャット画面は /chat/ にあります。
root-hint = お使いの SDK やエージェントの base_url に、このアドレスを指定してください。OpenAI の SDK では末尾に /v1 を付け、Anthropic と Gemini の SDK では付けません。
root-own = 状態の確認と管理

## koboshi serve: 何が応答するか

serve-variables-unset = { $key }: `{ $target }` に必要な環境変数が設定されていません。{ $variables } を設定するか、`providers` にプロバイダーを書いてください
serve-port-used = { $address } で待ち受けできません（{ $why }）。このポートは別のプログラム（別の Koboshi など）が使用中です。--listen 127.0.0.1:ポート番号（または設定の `serve.listen`）で別のポートを選んでください
serve-no-address = { $address } で待ち受けできません（{ $why }）。このマシンにはこのアドレスがありません。--listen アドレス:ポート番号（または設定の `serve.listen`）で、このマシンのアドレスを選んでください
serve-port-reserved = { $address } で待ち受けできません（{ $why }）。1024 未満のポートは予約されています。--listen アドレス:ポート番号 で別のポートを選んでください
serve-cannot-listen = { $address } で待ち受けできません: { $why }
serve-dashboard = ダッシュボード: { $place }
serve-chat = チャットのページ: { $place }
serve-demo = デモモードで動作しています。応答はすべて架空のものです。設定や環境変数の内容にかかわらず、AI プロバイダーには問い合わせません。
serve-no-key = API キーが見つかりません。応答できるのは sim/… という名前のモデルだけで、その応答は架空のものです。ほかのモデルはエラーになります。
serve-no-key-next = 次に、OPENAI_API_KEY、ANTHROPIC_API_KEY、GEMINI_API_KEY のいずれかを設定するか、koboshi.yaml にプロバイダーを追加してください（koboshi init で作成できます）。架空の応答ですべてを試すには: koboshi serve --demo
serve-sim-only = 設定にあるのは模擬プロバイダー（sim）だけで、AI プロバイダーはありません。応答は架空のもので、ほかのモデルはエラーになります。
serve-no-calls = 模擬プロバイダーは、モデル名（sim/ok?tools=yes）、tool_choice、プロンプトのいずれかで指示された場合を除き、ツール呼び出しを返しません。エージェントが実際に実行してしまうためです。

## ゲートウェイ自身の API キーが拒否されたとき

parked-resume = ゲートウェイの管理者が次のコマンドで再開するまで、停止したままです: { $command }
parked-resume-there = ゲートウェイの管理者が、ゲートウェイのマシンで次のコマンドを実行して再開するまで、停止したままです: { $command }
simulated-failure = 模擬プロバイダーが、モデル名の指定どおりに失敗しています。sim/ok など、別のモデルを使ってください。
gateway-key-forbidden =
    .message = AI プロバイダーは、このゲートウェイに設定された API キーを受け付けましたが、この操作を許可していません。
    .suggestion = ゲートウェイの管理者に連絡してください（アカウントへの権限の付与、または別のモデルの利用が必要です）。お使いのキーが原因ではありません。
gateway-key-refused =
    .message = AI プロバイダーが、このゲートウェイに設定された API キーを受け付けませんでした。未設定か、誤りか、失効しています。
    .suggestion = ゲートウェイの管理者に連絡してください。お使いのキーが原因ではありません。待っても解決しません。

own-key-simulated =
    .message = 模擬プロバイダー { $provider } が、モデル名の指定どおりにリクエストを拒否しました。
    .suggestion = 設定するキーはありません。sim/ok など、別のモデルを使ってください。
own-key-refused =
    .message = プロバイダー { $provider } が API キーを受け付けませんでした。未設定か、誤りか、失効しています。
    .suggestion = { $place }有効なキーを設定してください。ファイルの変更は自動で読み込まれます。環境変数を変えた場合は、ゲートウェイの再起動が必要です。待っても解決しません。
own-key-forbidden =
    .message = プロバイダー { $provider } は、設定された API キーによるこの操作を許可していません。
    .suggestion = プロバイダー側でアカウントに権限を付与するか、{ $place }別のキーを設定するか（環境変数を変えた場合は、ゲートウェイの再起動が必要です）、別のモデルを使ってください。
key-in-variable = 環境変数 { $name } に
key-in-config = { $config } の `{ $name }`（またはそこで参照している環境変数）に
named-provider = プロバイダー: { $name }。

## 保護された呼び出しの終わり

spent-one = { $message }（{ $kind }、1 回試行）{ $suggestion }
spent-many = { $message }（{ $kind }、{ $count } 回試行）{ $suggestion }

## koboshi run

run-waits = { $key } はクールダウン中です（{ $reason }）。{ $until }まで待ちます（あと { $left }）。
run-rests = 起動しませんでした。{ $key } は { $until }までクールダウン中です（{ $reason }）。--patience の { $patience }より長いため、待たずに終了します。その時刻を過ぎてから、もう一度実行してください（終了ステータス 75）。
run-unnamed = このコマンド
run-rests-unnamed = 再起動しませんでした（{ $reason }）。次に試せるのは { $until }以降です。--patience の { $patience }より長いため、待たずに終了します。名前のない実行は記録されません。--account または --agent で名前を付けると、次の実行は自動で待ちます（終了ステータス 75）。
run-parked-unnamed = 再起動しませんでした（{ $reason }）。原因を取り除いてから、もう一度実行してください（終了ステータス 69）。
run-parked = 起動しませんでした。{ $key } は停止中です（{ $reason }）。原因を取り除いてから、次のコマンドで再開してください: { $command }（終了ステータス 69）
run-rests-again = 再起動しませんでした。{ $key } は { $until }までクールダウン中です（{ $reason }）。--patience の { $patience }より長いため、待たずに終了します。その時刻を過ぎてから、もう一度実行してください（終了ステータス 75）。
run-parked-again = 再起動しませんでした。{ $key } は停止中です（{ $reason }）。原因を取り除いてから、次のコマンドで再開してください: { $command }（終了ステータス 69）
run-gateway-needs = { $variable } が設定されていないため、コマンドはゲートウェイ（{ $address }）ではなくプロバイダーに直接アクセスします。
run-gateway-without-key = ゲートウェイ（{ $address }）には { $vendor } のキーがなく、`serve.passthrough` も無効なため、コマンドはプロバイダーに直接アクセスします。
run-gateway-silent = { $address } からの応答がありません。コマンドはそのままこのアドレスを使います。
run-gateway-wants-keys = ゲートウェイ（{ $address }）の利用には専用のキー（`keys`）が必要なため、コマンドはプロバイダーに直接アクセスします。キーを環境変数に設定済みなら、--gateway { $address } を指定してください。
run-gateway-login = { $variable } がどれも設定されていないため、コマンドは自身のログインでプロバイダーに直接アクセスします。ゲートウェイ（{ $address }）を通すと、ログインの代わりにゲートウェイのキーが使われてしまうためです。ログインのまま通すには `serve.passthrough: true` にしてください。
run-missing = { $program } が見つかりません。名前と PATH を確認してください（終了ステータス 127）。
run-refused = { $program } を実行できません: { $why }（終了ステータス 126）
run-next-parked = { $key } は停止しているため、次の実行も起動しません。原因を取り除いてから、次のコマンドで再開してください: { $command }
run-next-rests = { $key } は { $until }までクールダウン中のため、次の実行はそれまで待ちます。待たずに実行するには: { $command }
run-again = コマンドが失敗したため（{ $reason }）、もう一度起動します。
run-others-first = ほかの実行が先に起動します
run-failed = コマンドが失敗しました（{ $reason }）。再起動はしません。
run-failed-rests = コマンドが失敗しました（{ $reason }）。再起動はしません。{ $key } は { $until }までクールダウン中で、次の実行はそれまで待ちます。待たずに実行するには: { $command }
run-failed-parked = コマンドが失敗しました（{ $reason }）。再起動はしません。{ $key } は停止中です。原因を取り除いてから、次のコマンドで再開してください: { $command }

## Agents of a supervisor

supervise-agents = 管理するエージェント（{ $count } 件）: { $names }。状態は `koboshi status`、出力は `koboshi logs エージェント名` で確認できます。
supervise-metrics = メトリクス: { $place }
reload-done = 設定を反映しました。
reload-added = 追加: { $names }
reload-removed = 削除: { $names }
reload-restarted = 再起動: { $names }
reload-changed = 再起動なしで変更: { $names }
reload-restart-for = スーパーバイザーの再起動後に反映: { $names }
reload-refused = 新しい設定は使えないため、これまでの設定を使い続けます: { $why }
agent-running = 実行中
agent-stopping = 停止処理中
agent-stopped = 管理者により停止
agent-held = 待機中:
agent-parked = 停止中（再開待ち）
agent-aside = 対象外（記録フォルダーの異常）:
agent-waiting = 次の起動待ち
# `agent-last` と `agent-rule` は 1 行に並び、判断の根拠となった行が続きます。
agent-last = 前回の実行: { $time } に終了、終了コード { $code }（{ $outcome }）
agent-rule = ルール { $rule }
agent-end-succeeded = 成功
agent-end-idle = 成功（短すぎるため、何もしていない可能性あり）
agent-end-stopped = 要求により停止

## ウェブページのエラー表示（web/client）。表示用の表はこの節から作られます

display-retry = もう一度試す
display-retrying = 再試行しています…
display-trim = 会話を短くする
display-new = 新しい会話を始める
display-dismiss = 閉じる
display-copy = コードをコピー
display-copied = コピーしました
display-stop = 停止
display-tried = { $count } 回試しました。
display-wait = { $time }後に再試行できます。
display-wait-until = { $time } に再試行できます。
display-auto = { $time }後に自動で再試行します。
display-ready = 再試行できます。
display-offline = この端末はオフラインです。オンラインに戻ると再試行できます。

display-kind-connection-failed =
    .message = サーバーに接続できません。
    .suggestion = この端末のネットワークを確認してから、もう一度お試しください。
display-kind-unauthorized =
    .message = サインインしていないか、サインインの期限が切れています。
    .suggestion = もう一度サインインしてから続けてください。
display-kind-conversation-not-found =
    .message = この会話は終了し、サーバーには残っていません。
    .suggestion = 画面の内容はそのまま残ります。続けるには、新しい会話を始めてください。
display-kind-outbox-full =
    .message = 送信待ちのメッセージが多すぎます。
    .suggestion = 接続が回復してから、もう一度送信してください。
display-kind-superseded =
    .message = このページが別の場所で開き直されたため、新しいほうで続いています。
    .suggestion = 新しいほうのウィンドウで続けてください。
display-kind-internal =
    .message = 問題が発生しました。
    .suggestion = もう一度お試しください。続く場合は、下のコードをサイトの管理者にお知らせください。

## セッション

session-retry = AI サービスから応答を受け取れませんでした。{ $wait }後にもう一度試します。
session-retry-busy = AI サービスが混み合っています。{ $wait }後にもう一度試します。
session-recover = サーバーとの接続が中断されました。応答を最初からやり直します。
session-no-access =
    .message = このゲートウェイのキーかチケットが必要ですが、接続には有効なものがありません。
    .suggestion = ゲートウェイのキーを使って POST /v1/session/ticket でチケットを取得し、それを付けて接続してください。AI プロバイダーの API キーは、ここでは使えません。
session-ticket =
    .message = チケットが有効ではありません。すでに使われたか、期限が切れています。
    .suggestion = POST /v1/session/ticket で新しいチケットを取得してから、接続し直してください。
session-unknown =
    .message = セッションが見つからないか、再開用のトークンが正しくありません。
    .suggestion = hello の session と resume を確認するか、どちらも付けずに新しいセッションを始めてください。
session-refused =
    .message = セッションのメッセージは読み取れましたが、今は実行できません。
    .suggestion = 理由は detail にあります。その状態が続くかぎり、同じメッセージを送信しても失敗します。
session-no-model =
    .message = メッセージにモデルの指定がなく、ゲートウェイにもセッション用の既定のモデルがありません。
    .suggestion = メッセージに route を付けて送信するか、ゲートウェイの設定ファイルで sessions.model を設定してください。

# `koboshi spend`
spend-days = { $from } から { $to } まで（{ $zone }）
spend-empty = この期間の支出はありません。
spend-attempts = 試行
spend-input = 入力トークン
spend-output = 出力トークン
spend-cost = 費用
spend-unknown = 不明
spend-total = 合計
spend-by-key = キー
spend-by-model = モデル
spend-by-route = ルート
spend-by-agent = エージェント
spend-by-day = 日付
spend-unpriced = 価格が分からないモデルの { $tokens } トークンは、費用に含まれていません。価格はモデルのファイル（`models_file`）に追加できます。
spend-estimated = { $attempts } 回の試行の { $tokens } トークンは推定値です。プロバイダーが使用量を示さなかったか、その前に応答が途切れました。
spend-lost = クライアントへの応答にならなかった試行が { $attempts } 回あり、その費用は、価格の分かるモデルの分で { $cost } です。
spend-lesser = 簡易な応答の費用は { $cost } です。
spend-budget-day = { $key }: 1 日の予算 { $limit } のうち { $spent }（{ $share } %）を使用。更新は { $until }
spend-budget-month = { $key }: 1 か月の予算 { $limit } のうち { $spent }（{ $share } %）を使用。更新は { $until }

# `koboshi key`
key-exists = キー { $name } はすでにあります。先に取り消すか、別の名前を選んでください。
key-by-hand = { $file } にキーを書き込めません。キーは上に表示しました。次の行を `keys` の下に自分で追加してください。
    { $lines }
key-made = このキーが表示されるのは、この 1 回だけです。ハッシュは { $file } に { $name } の名前で書き込みました。クライアントは、これを API キーとして送ります。
key-first = これは最初のキーです。これ以降、どのクライアントにもキーが必要です。また、管理者キーを設定するまで、ダッシュボード、--url を使うコマンド、/metrics は、このマシンからも使えません。管理者キーは `openssl rand -hex 32` などで作り、そのハッシュ（`printf %s KEY | sha256sum`）を、設定ファイルの `admin` の下に `sha256` として書いてください。
key-unknown-name = { $file } にキー { $name } はありません。
key-last = { $name } は { $file } のただ 1 つのキーです。キーが 1 つもないと、このマシンのすべてのプログラムがゲートウェイを呼び出せます。先に別のキーを追加するか、自分で削除してください。
key-revoke-by-hand = { $file } からキー { $name } の行を削除できません。自分で削除してください。
key-revoked = { $name } は { $file } のキーではなくなりました。実行中のゲートウェイは、ファイルを読み直すと、このキーを拒否します。
key-no-config = 書き込む設定ファイルがありません。`koboshi init` で作成するか、--config で指定してください。
## koboshi drill

drill-no-config = 訓練に使う設定がありません。--config で指定するか、koboshi init で最初の設定を作成してください
drill-no-routes = 設定にターゲットのあるルートがないため、訓練できません。`routes` を追加してください
drill-unknown = { $name } というシナリオはありません。使えるのは { $known } です
drill-progress = シナリオ { $total } 件のうち { $done } 件が終了 …
drill-route = { $route }: シナリオ { $total } 件のうち { $good } 件が良好
drill-targets = ターゲット
drill-after = { $seconds } 秒後
drill-calls = 送信 { $calls } 回
drill-failed = { $ends } { $kind }（ステータス { $status }）
drill-ends-answer = 応答
drill-ends-lesser = 代わりの応答
drill-ends-error = エラー
drill-ends-damaged = 壊れた応答
drill-ends-nothing = 応答もエラーもなし
drill-better = 改善できる点
drill-nothing-better = 試した変更の中に、結果を良くするものはありませんでした。
drill-score = スコア: { $score } %（{ $total } 件のうち { $good } 件）
drill-page-title = Koboshi の訓練
drill-head-scenario = シナリオ
drill-head-client = クライアントの受け取るもの
drill-head-after = 所要時間
drill-head-calls = 送信回数
drill-virtual = プロバイダーは模擬、時間は仮想です。表示された秒数はすべて障害によるものです。
drill-better-fallback = `{ $route }` にフォールバックがありません。シナリオ { $count } 件がエラーで終わります。1 つ追加してください
drill-better-fallback-of-one = `{ $route }` にフォールバックがありません。シナリオ 1 件がエラーで終わります。1 つ追加してください
drill-better-other-provider = `{ $route }` のターゲットは同時に止まります。シナリオ { $count } 件がエラーで終わります。別のプロバイダーのターゲットを追加してください
drill-better-other-provider-of-one = `{ $route }` のターゲットは同時に止まります。シナリオ 1 件がエラーで終わります。別のプロバイダーのターゲットを追加してください
drill-better-attempts = 試行回数が足りません。3 回にすると、`{ $route }` のシナリオ { $count } 件が応答で終わります
drill-better-attempts-of-one = 試行回数が足りません。3 回にすると、`{ $route }` のシナリオ 1 件が応答で終わります
drill-better-guard = `{ $route }` ではループガードが働きません。同じツール呼び出しを繰り返すモデルを止められません。`stop` に設定してください
drill-better-complete = `{ $route }` のストリームは、無事に終わると分かる前に始まります。`complete` にするとシナリオ { $count } 件が応答で終わりますが、最初の文字は遅くなります
drill-better-complete-of-one = `{ $route }` のストリームは、無事に終わると分かる前に始まります。`complete` にするとシナリオ 1 件が応答で終わりますが、最初の文字は遅くなります
drill-better-timeouts = 制限時間が長すぎます。`first_token: 20s`、`idle: 20s`、`unary: 60s` にすると、`{ $route }` のシナリオ { $count } 件が半分未満の時間で終わります
drill-better-timeouts-of-one = 制限時間が長すぎます。`first_token: 20s`、`idle: 20s`、`unary: 60s` にすると、`{ $route }` のシナリオ 1 件が半分未満の時間で終わります
drill-better-prepared = `{ $route }` のターゲットがすべて止まると、クライアントはエラーを受け取ります。用意した文章（`degrade.answers_file`）か別のプロバイダーのモデル（`degrade.simple_model`）があれば、代わりに応答できます
drill-on-throttled = 流量制限（待ち時間 20 秒の指定あり）
drill-on-throttled-unstated = 流量制限（待ち時間の指定なし）
drill-on-quota = 1 日の利用枠の使い切り
drill-on-server-error-once = サーバーエラー（500）が 1 回
drill-on-server-error = サーバーエラー（500）が続く
drill-on-unavailable = サービス停止（503）
drill-on-overloaded = モデルの過負荷（529）
drill-on-reset = 接続のリセット
drill-on-hang-before-head = 応答がまったく始まらない
drill-on-hang-after-head = 応答のヘッダーの後で沈黙
drill-on-hang-in-text = 本文の途中で沈黙
drill-on-slow-first-token = 最初のトークンが 45 秒後
drill-on-cut-before-text = 本文の前で切断
drill-on-cut-in-text = 本文の途中で切断
drill-on-cut-in-tool-call = ツール呼び出しの途中で切断
drill-on-no-end-mark = 終了の印のないストリーム
drill-on-error-in-200 = 200 の応答の中のエラー
drill-on-error-in-text = ストリームの途中のエラー
drill-on-empty = 空の応答
drill-on-broken-json = ストリームの壊れた JSON
drill-on-half-body = 本文が半分だけ
drill-on-web-page = 応答の代わりに Web ページ
drill-on-broken-tool-arguments = 別の記法で書かれたツールの引数
drill-on-unreadable-tool-arguments = 読み取れないツールの引数
drill-on-looped-tool-calls = 同じツール呼び出しの繰り返し
drill-on-dead-key = API キーの拒否
drill-on-empty-account = アカウントの残高切れ
drill-on-context-too-large = モデルには長すぎる会話
drill-on-content-filter = コンテンツフィルターによるプロンプトの拒否
drill-on-dns = サーバー名が見つからない（DNS）
drill-on-certificate = 信頼できない証明書
drill-on-flapping = 停止と復旧の繰り返し（リクエスト 6 回）
drill-on-all-down = すべてのターゲットが停止
drill-on-store-away = Koboshi のストアに接続できない
drill-on-store-full = Koboshi のストアが満杯

## 通知

notice-severity-info = 情報
notice-severity-warning = 警告
notice-severity-critical = 重大
notice-breaker = { $subject } は失敗が続いているため、しばらく使いません（ブレーカーが開いています）
notice-cooldown = { $subject } はクールダウン中です
notice-park = { $subject } は停止しています
notice-budget-near = { $subject }の 80 % 以上を使いました
notice-budget-spent = { $subject }を使い切りました。このキーのリクエストは拒否されます
notice-over = { $subject } は再び使えます
notice-over-budget = { $subject }に再び余裕ができました
notice-the-route = ルート { $name }
notice-route = { $subject } のターゲットがすべて使えません
notice-route-next = このルートのリクエストは、失敗するか代替の応答になります。各ターゲットが使えない理由は `koboshi status` で確認できます。ルートにターゲットを追加しておくと、そちらが応答します。
notice-over-route = { $subject } のターゲットが再び使えるようになりました
notice-client-day = キー { $name } の 1 日の予算
notice-client-month = キー { $name } の 1 か月の予算
notice-many = [{ $severity }] 通知 { $count } 件: 発生 { $began }、悪化 { $worse }、終了 { $over }
notice-more = ほかに { $count } 件あります。現在の状態は `koboshi status` で確認できます。
notice-dropped = 古い通知 { $count } 件が失われました。チャンネルの停止中に保持しきれなかったか、受信側に拒否されたためです。
notice-worse = 最初の通知のときより悪化しました。
notice-since = { $since }から。
notice-until = { $since }から{ $until }まで。
notice-resume = 再開するまでこのままです: { $command }
notice-at-least = 少なくとも { $count }
notice-lasted = 継続時間は { $length } でした（{ $since }から{ $until }まで）。
notice-cost = その間に { $faults } 回の試行が失敗しました。クライアントに届かなかった試行は { $lost } 回（{ $lost-cost }）、代替の応答の費用は { $lesser-cost } です。
notice-cost-nothing = その間に失敗した試行はありませんでした。
notice-test = テスト通知です。チャンネル { $channel } は動作しています。
notify-unknown-channel = 設定にチャンネル { $channel } はありません。あるもの: { $known }
notify-no-channels = 設定にチャンネル { $channel } はなく、ほかのチャンネルもありません。`notify.channels` に追加してください
notify-sent = { $channel }: テスト通知を送信しました（{ $kind }）
notify-not-sent = { $channel }: テスト通知を送信できませんでした（{ $kind }）: { $why }

## What a single rule says, where its category or kind would say less: `rule-` and the rule's name

rule-process-memory-killed =
    .message = マシンまたはコンテナのメモリが不足したため、システムがプロセスを終了させました。
    .suggestion = 同時に動かすエージェントを減らすか、マシンまたはコンテナのメモリを増やしてください。どのプロセスが終了させられたかは、`journalctl -k | grep -i oom` で確認できます。
rule-process-memory-node =
    .message = Node.js のプログラムが、ヒープの上限に達しました。マシンのメモリにはまだ余裕があるかもしれません。
    .suggestion = NODE_OPTIONS=--max-old-space-size=4096（MiB）などで上限を引き上げるか、一度に扱うデータを減らしてください。
rule-process-memory-java =
    .message = Java のプログラムが、ヒープの上限に達しました。マシンのメモリにはまだ余裕があるかもしれません。
    .suggestion = JAVA_TOOL_OPTIONS=-Xmx4g のように -Xmx で上限を引き上げるか、一度に扱うデータを減らしてください。
rule-process-memory-gpu =
    .message = GPU のメモリを使い切りました。
    .suggestion = バッチサイズやモデルを小さくするか、GPU を使っているほかのプログラムを終了してください。`nvidia-smi` で一覧できます。
rule-tool-resource-memory =
    .message = ツールのメモリが不足しました。
    .suggestion = 一度に扱うデータや同時に動かすプログラムを減らすか、上限を引き上げてください（Node.js は NODE_OPTIONS=--max-old-space-size=4096、Java は -Xmx、コンテナはメモリの制限）。
rule-tool-resource-port =
    .message = ポートは、すでに別のプロセスが使っています。
    .suggestion = そのプロセスを終了するか、別のポートを使ってください。使っているプロセスは `ss -ltnp`（macOS では `lsof -iTCP -sTCP:LISTEN`）で確認できます。前回起動した同じプログラムが残っていることがよくあります。
rule-tool-resource-files =
    .message = 開けるファイル数、または監視できるファイル数の上限に達しました。
    .suggestion = 上限を引き上げてください（開けるファイル数は `ulimit -n 8192`、監視できるファイル数は `sysctl fs.inotify.max_user_watches=524288`）。前回の実行で残ったプログラムを終了しても構いません。
rule-tool-resource-disk =
    .message = ディスクがいっぱいか、割り当て容量を使い切っています。
    .suggestion = 空き容量を増やしてください。どのディスクがいっぱいかは `df -h`、作成できるファイル数の残りは `df -i` で確認できます。
rule-tool-git-lock =
    .message = 別の git プロセスがこのリポジトリを使っているか、異常終了した git のロックファイルが残っています。
    .suggestion = 別の git プロセスが終わるまで待ってください（`pgrep -a git` で確認できます）。動いていない場合は、メッセージにあるロックファイル（.git/index.lock など）を削除してください。
rule-tool-git-public-key =
    .message = Git サーバーは、提示された SSH 鍵をどれも受け付けませんでした。
    .suggestion = サーバーのアカウントに公開鍵を登録するか、`ssh-add` で鍵を読み込んでください。`ssh -T git@HOST` で確認できます。https:// のアドレスとトークンも使えます。
rule-tool-git-owner =
    .message = リポジトリの所有者が別のユーザーのため、git は動作を拒否しました。
    .suggestion = フォルダーの所有者として git を実行するか、`git config --global --add safe.directory FOLDER` で許可してください。
rule-tool-git-conflict =
    .message = マージの競合が起きたため、git は処理を中断しました。双方が同じ行を変更しています。
    .suggestion = `git status` に表示されるファイルの印の付いた箇所を直し、`git add` してからコミットしてください（リベース中は `git rebase --continue`）。取りやめるには `git merge --abort` または `git rebase --abort` を実行します。
rule-tool-git-hook =
    .message = Git サーバーがプッシュを拒否しました。このブランチのルールまたはフックで禁止されています。
    .suggestion = `remote:` で始まる行を確認してください。多くの場合、自分のブランチにプッシュして、プルリクエストを作成すれば解決します。
rule-tool-git-rejected =
    .message = Git サーバーがプッシュを拒否しました。サーバー側のブランチに、手元にないコミットがあります。
    .suggestion = `git pull --rebase` で取り込み、競合があれば解決してから、もう一度プッシュしてください。
rule-tool-git-local-changes =
    .message = コミットしていない変更が上書きされるため、git は処理を中止しました。
    .suggestion = 変更をコミットするか、`git stash -u` で退避してから、もう一度実行してください。
rule-tool-git-diverged =
    .message = 双方のブランチに互いにないコミットがあり、統合の方法が指定されていません。
    .suggestion = `git pull --rebase` または `git pull --no-rebase` を使ってください。共通のコミットがなくても統合する場合は、--allow-unrelated-histories を付けます。
rule-tool-git-no-repository =
    .message = このフォルダーは git リポジトリの中にありません。
    .suggestion = リポジトリのフォルダーに移動するか、`git init` で作成してください。
rule-tool-git-identity =
    .message = コミットに記録する名前とメールアドレスが、git に設定されていません。
    .suggestion = `git config --global user.name "NAME"` と `git config --global user.email ADDRESS` で、両方を設定してください。
rule-tool-git-path =
    .message = この名前のファイルもブランチも、git には見つかりません。
    .suggestion = つづりを確認してください（ファイルは `git status`、ブランチは `git branch -a` で一覧できます）。サーバー側の新しいブランチは、先に `git fetch` が必要です。
rule-tool-npm-lock =
    .message = package.json とロックファイルの内容が一致していません。`npm ci` はどちらも変更しません。
    .suggestion = `npm install` を実行し、更新されたロックファイルをコミットしてから、もう一度 `npm ci` を実行してください。
rule-tool-npm-permission =
    .message = npm には、表示されたフォルダーへの書き込み権限がありません。
    .suggestion = -g を付けずにプロジェクト内にインストールするか、自分のフォルダーを使うように設定してください（npm config set prefix ~/.npm-global）。以前の `sudo npm` で作られたファイルが原因の場合は、所有者を変更してください。
rule-tool-npm-no-package =
    .message = このフォルダーに package.json がありません。
    .suggestion = プロジェクトのフォルダーに移動するか、`npm init -y` で package.json を作成してください。
rule-tool-npm-script =
    .message = package.json に、この名前のスクリプトがありません。
    .suggestion = `npm run` で、使えるスクリプトを一覧できます。
rule-tool-npm-integrity =
    .message = ダウンロードしたパッケージが、ロックファイルの記録と一致しません。
    .suggestion = `npm cache clean --force` を実行してから、もう一度インストールしてください。解決しない場合は、ロックファイルを作り直す前に、レジストリがロックファイルと同じかどうかを確認してください。
rule-tool-npm-engine =
    .message = パッケージが、別のバージョンの Node.js または別のプラットフォームを必要としています。
    .suggestion = メッセージにあるバージョンをインストールするか、お使いの環境に合うバージョンのパッケージを使ってください。
rule-tool-npm-not-found =
    .message = この名前またはバージョンのパッケージが npm レジストリにないか、読み取る権限がありません。
    .suggestion = 名前とバージョンを確認してください。非公開のパッケージの場合は、`npm login` でサインインし、.npmrc の `registry` を確認してください。
rule-tool-npm-failed =
    .message = npm が実行したスクリプトが失敗しました。
    .suggestion = 原因は、npm の行より上にあるスクリプトの出力に書かれています。スクリプトを単独で実行すると確認できます。
