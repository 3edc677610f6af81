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
    .suggestion = 数分おいてからもう一度お試しください。問題が続く場合は、システム管理者に連絡してください。
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
    .suggestion = アカウントの管理者に権限の付与を依頼するか、権限のある API キーまたはモデルを使ってください。
kind-permission-denied-region =
    .message = API へのアクセス権限がありません。この国または地域からの利用は許可されていません。
    .suggestion = お使いの地域に対応しているプロバイダーかエンドポイントを使ってください。待っても解決しません。
kind-permission-denied-blocked =
    .message = AI プロバイダーの手前にあるファイアウォールまたは CDN が、リクエストをブロックしました。API 自体は応答していないため、API キーの問題とは限りません。
    .suggestion = 別のネットワークから試すか、VPN やプロキシを使わずに試してください。base_url が API のアドレスかどうかも確認してください。繰り返す場合は、ページに表示された ID（Cloudflare では Ray ID）を添えてプロバイダーに問い合わせてください。
kind-permission-denied-model =
    .message = API へのアクセス権限がありません。このアカウントでは、このモデルを使えません。
    .suggestion = 別のモデルを選ぶか、アカウントの管理者にこのモデルの有効化を依頼してください。
kind-rate-limited =
    .message = AI プロバイダーのレート制限に達しました。短い時間のリクエスト数またはトークン数が多すぎます。
    .suggestion = しばらく待ってから再度お試しください。制限は自動的に解除されるため、設定の変更は不要です。
kind-rate-limited-concurrency =
    .message = このアカウントで同時に実行中のリクエストが多すぎます。
    .suggestion = しばらく待ってから再度お試しください。繰り返す場合は、同時に動かすエージェントを減らしてください。
kind-rate-limited-operator =
    .message = このゲートウェイに設定された同時リクエスト数の上限（gate.max_concurrency）に達しました。
    .suggestion = 実行中のリクエストが終わるのを待ってから、もう一度お試しください。
kind-quota-exceeded =
    .message = このアカウントの利用枠を使い切りました。
    .suggestion = 利用枠が更新されるまで待つか、それまで別のアカウントかプロバイダーを使ってください。
kind-quota-exceeded-window =
    .message = このアカウントの利用枠（数時間または 1 週間ごと）を使い切りました。
    .suggestion = 利用枠が更新されるまで待つか、それまで別のモデル、アカウント、プロバイダーを使ってください。それより前に再試行しても失敗します。
kind-quota-exceeded-day =
    .message = このアカウントの今日の利用枠を使い切りました。
    .suggestion = プロバイダー側で日付が変わるまで待つか（タイムゾーンが異なる場合があります）、それまで別のアカウントかプロバイダーを使ってください。
kind-quota-exceeded-month =
    .message = このアカウントの今月の利用枠を使い切りました。
    .suggestion = プロバイダーの管理画面で月間の上限を引き上げるか、月が変わるまで別のアカウントかプロバイダーを使ってください。
kind-quota-exceeded-plan =
    .message = このアカウントのプランでは、この機能を利用できません。
    .suggestion = プランで使えるモデルを選ぶか、プランを変更してください。待っても解決しません。
kind-quota-exceeded-billing =
    .message = アカウントの残高が不足しているか、支出の上限に達しています。
    .suggestion = プロバイダーの管理画面で、クレジットの追加、未払い分の支払い、または支出上限の引き上げを行ってください。待っても解決しません。
kind-context-build-failed =
    .message = コンテキストの構築に失敗しました。
    .suggestion = プロバイダーには何も送信されていません。このメッセージのコードを添えて、システム管理者に連絡してください。
kind-context-too-large =
    .message = コンテキストがトークン制限を超過しています。会話が長すぎて、モデルが一度に読み込めません。
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
    .suggestion = 数分おいてからもう一度お試しください。お急ぎの場合は別のモデルを使ってください。
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
    .message = このマシンのメモリが不足し、エージェントのプロセスが終了しました。
    .suggestion = 同時に動かすエージェントを減らすか、マシンまたはコンテナのメモリを増やしてください。
kind-process-failed-signal =
    .message = エージェントのプロセスが、外部からのシグナルで終了しました。
    .suggestion = 終了させたのが人か、システムか、コンテナの制限かを確認してから、もう一度起動してください。
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
    .suggestion = クールダウンが終われば自動的に再開するため、操作は不要です。それまで別のターゲットを使うこともできます。
kind-cooling-down-operator =
    .message = 管理者がこのターゲットの使用を一時停止しています。
    .suggestion = ゲートウェイの管理者に確認するか、それまで別のモデルを使ってください。
kind-parked =
    .message = このターゲットは停止中です。手動で再開するまで使用できません。
    .suggestion = ゲートウェイの管理者が koboshi status で理由を確認し、原因を取り除いてから koboshi resume KEY で再開します（KEY は status に表示されます）。
kind-internal =
    .message = 内部エラーが発生しました。原因は、プロバイダーまたは Koboshi の側にあります。
    .suggestion = 数分おいてからもう一度お試しください。問題が続く場合は、リクエスト ID を添えてシステム管理者に連絡してください。
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
all-failed = このモデルの { $count } 個のターゲットは、すべて失敗したか、使用できない状態です: { $targets }。

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
cause-unauthorized = API キー
cause-token-expired = サインインの期限切れ
cause-permission-denied = アカウントの権限
cause-permission-denied-blocked = AI プロバイダーの手前のファイアウォールまたは CDN
cause-content-filtered = AI プロバイダーのコンテンツフィルター
cause-cooling-down-operator = ゲートウェイの管理者の操作
cause-model-not-found-own = ゲートウェイの設定
cause-connection-refused = 接続先のアドレス、またはそのサーバー

scope-request = この 1 件のみ
scope-key = この API キーを使うものすべて
scope-account = このアカウントを使うものすべて
scope-model = このモデルを使うものすべて
scope-provider = このプロバイダーを使うものすべて
scope-network = このマシンから同じホストへのリクエスト（ほかの通信に影響があるとは限りません）

confidence-low = 低（ステータスまたは終了コードだけで判断しました）
confidence-low-line = 低（エラーと思われる行がありますが、種類は特定できませんでした）
confidence-medium = 中（文言から判断しました）
confidence-high = 高（コード、ヘッダー、イベントに明記されています）

retry-yes = 可能です。同じリクエストをもう一度送信できます。
retry-after-wait = その時刻以降は可能です。
retry-later = 今はできません。時間をおけば再試行できます。
retry-no = できません。原因を取り除くまで、再試行しても失敗します。
retry-other-yes = 別のプロバイダーやモデルなら、今すぐ使えるかもしれません。
retry-other-network = このマシンがオフラインでなければ、別のプロバイダーなら使えるかもしれません。
retry-other-no = 別のプロバイダーに変えても解決しません。
retry-tool-yes = 可能です。同じ呼び出しをもう一度試せます。
retry-tool-no = できません。原因を取り除くまで、同じ呼び出しは失敗します。
retry-process-yes = 可能です。もう一度起動できます。
retry-process-no = できません。原因を取り除くまで、起動しても失敗します。


nothing-wrong = 問題は見つかりませんでした。
wait-until = { $time }まで（あと { $left }）
wait-over = 示された待ち時間は過ぎました。再試行できます。
wait-not-the-day = これはプロバイダーが示した待ち時間です。今日の利用枠は、プロバイダー側で日付が変わるまで更新されない場合があります。
wait-stated = 元のテキストの時刻: { $time }
wait-assumed = 元のテキストにタイムゾーンの記載がないため、次のタイムゾーンとして読みました: { $zone }

## 読み取れない入力

explain-internal = AI プロバイダーの内部でエラーが発生しました。
input-stdin = 標準入力
input-empty = { $name }が空です。ログまたは応答の内容を渡してください。
input-binary = { $name }はテキストではありません（バイナリデータ、または UTF-8 以外の文字コードです）。Shift_JIS の場合は、先に変換してください: iconv -f CP932 -t UTF-8 FILE | koboshi { $command }（EUC の場合は -f EUC-JP、JIS の場合は -f ISO-2022-JP）
input-directory = { $name }を読み取れません。フォルダーです。
input-missing = { $name }を読み取れません。ファイルがありません。
input-denied = { $name }を読み取れません。読み取り権限がありません。
input-unreadable = { $name }を読み取れません: { $why }
input-answer-too-long = 応答が長すぎるため、全体を判定できません。エラーを含む部分だけを渡してください。

## 記憶している状態

status-clear = すべてのターゲットを利用できます。
status-key-clear = { $key } 自体には、クールダウンも制限も記録されていません。関連するものを含むすべての状態は `koboshi status` で確認できます。
status-nothing-known = まだ何も記録されていません（{ $place } がありません）。
status-store = ストア { $place } から読み込みました。
status-remote = ゲートウェイ { $place } から取得しました（ストア: { $store }）。
status-trouble = 現在ストアを読み取れないため、ゲートウェイ自身が把握している状態を表示しています: { $why }
status-gateway-running = ゲートウェイ { $address } の最終報告は { $ago }前です。
status-gateway-silent = ゲートウェイ { $address } からの報告は { $time }が最後です。停止しているか、ストアに接続できていません。
status-gateway-stopped = ゲートウェイ { $address } は { $time }に停止しました。
status-no-gateway = このストアを使ったゲートウェイはまだありません。
status-until = { $time }まで（あと { $left }）
status-since = { $time }から
status-streak = 連続失敗 { $count } 回
status-openings = 連続で { $count } 回オープン
status-node = { $node } で検出
status-probing = 数件のリクエストで復旧を確認します
status-due = 次のリクエストで復旧を確認します
status-resume = 原因を取り除いてから、次のコマンドで再開してください: { $command }
status-release = 次のコマンドで再開するまで使用されません: { $command }
status-unreadable = { $slot } は読み取れないため、変更していません: { $why }
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
resume-nothing = { $key } に対するクールダウン、停止、制限はなく、ブレーカーもオープンではありません。再開するものはありませんでした。
resume-all-nothing = クールダウン中または停止中のものはなく、オープンのブレーカーもないため、再開するものはありません。
resume-above = { $key } が原因で利用できません。次のコマンドで再開できます: { $command }
cool-done = { $key } をクールダウン状態にしました: { $until }
config-unusable = 設定ファイルを使用できません（`{ $check }` ですべて確認できます。別のファイルは --config で指定できます）:
cool-past = { $time }は過去の時刻です。クールダウンを終えるには: { $command }
key-unknown = { $key } に該当するターゲットはありません。
key-unchanged = 何も変更していません。
key-near = 次のいずれかではありませんか: { $near }
key-force = まだリクエストのないモデルなど、この指定で間違いない場合は --force を付けてください。
key-unknowable = キー { $key } を持つターゲットがあるか確認できません。設定ファイルが見つからず、このストアを使ったゲートウェイもありません。--config で設定ファイルを、または --url でゲートウェイを指定するか、--force を付けてください。
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
time-no-instant = `{ $text }` をタイムゾーン付きの時刻として読み取れません。2026-11-15T12:00:00Z、2026-11-15T12:00:00+09:00、2026-11-15T12:00:00[Asia/Tokyo] のように書いてください。
time-no-length = `{ $text }` を時間の長さとして読み取れません。30s、45m、2h、1d のように書いてください。
time-too-long = { $text } は長すぎます。365 日以内にするか、--until で終了日時を指定してください
time-zero-length = `{ $text }` は 0 です。0 より長い時間を書いてください。
time-neither = `{ $text }` を時間の長さとしても時刻としても読み取れません。2h や、タイムゾーン付きの 2026-11-15T12:00:00Z のように書いてください。
key-of-one-process = { $key } は 1 台のマシンのネットワークについてのキーです。そのマシンのプロセスだけが管理しているため、ここからは設定できません。
store-memory = メモリ（再起動すると消えます）
store-redis = Redis サーバー（{ $address }）

## スーパーバイザーのログに残る理由

reason-quota = 利用枠の使い切り
reason-billing = 残高不足または支出の上限
reason-rate-limit = 短時間のリクエスト数またはトークン数の超過
reason-overloaded = プロバイダーの過負荷または停止
reason-auth = 認証エラーまたは権限不足
reason-context = 会話が長すぎる
reason-network = ネットワークの障害
reason-error = その他のエラー
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
guard-replay-empty = ファイルが空です。実行記録がありません
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
check-described = 。キーの説明は docs/config.md にあります。

## koboshi models

models-built-in = 内蔵（models.yaml:{ $line }）
models-simulated = 模擬プロバイダー
models-assumed = 不明のため既定値
models-unknown = このモデルの情報がないため、すべて既定値です。追加の方法は docs/models.md にあります。
models-none-named = 設定にモデル名がありません。koboshi models NAME のように指定してください。次の形の名前を認識します:

## koboshi init

init-done = { $place } を書き出しました。
init-found = 環境変数で見つかった API キー: { $names }
init-keyless = キーなしで使うプロバイダー: { $names }
init-none = 環境変数に API キーが見つからないため、模擬プロバイダーが応答するデモ用のルートを書きました。
init-next = 次に `{ $check }` で確認し、`{ $serve }` を起動してください。
init-folder = { $place } はフォルダーです。{ $file } のようにファイル名まで指定してください
init-there = { $place } はすでにあるため、変更していません。上書きするには --force、新しい内容を見るには --print を付けてください
init-cannot-write = { $place } に書き込めません: { $reason }
init-ask-language = コメントの言語（en または ja） [{ $default }]:
init-ask-providers = どのプロバイダーを使いますか？ 番号か名前をカンマ区切りで入力してください（使わない場合は `none`） [{ $default }]:
init-ask-found = キーあり
init-ask-keyless = キー不要
init-ask-missing = { $name } が未設定
init-ask-nobody = なし
init-ask-unknown = `{ $name }` は一覧にありません。
init-unknown-provider = `{ $name }` は init の対象にないプロバイダーです。使えるもの: { $known }
init-without-key = キーがないため、まだ有効にしていません: { $names }。環境変数を設定してから、ファイルの `#` を外してください。

## koboshi import

import-there = { $place } はすでにあるため、変更していません。上書きするには --force を付けるか、別のファイルを指定してください
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
serve-label-providers = プロバイダー
serve-label-config = 設定
serve-label-store = ストア
serve-no-config = なし（既定値と環境変数を使います）
serve-try = 試してみるには:

## ゲートウェイ自身が断るリクエスト（プロバイダーには送っていません）

provider-internal =
    .message = AI プロバイダーで内部エラーが発生しました。
    .suggestion = 数分おいてからもう一度お試しください。問題が続く場合は、プロバイダーの稼働状況を確認してください。
refused-path =
    .message = { $method } { $path } は Koboshi では提供していません。
    .suggestion = base_url とパスを確認してください。利用できるエンドポイントは次のとおりです: { $served }。
refused-path-doubled =
    .message = { $method } { $path } は Koboshi では提供していません。パスにバージョンが二重に入っています。
    .suggestion = base_url の末尾からバージョンを取り除き、リクエストが { $near } に届くようにしてください。
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
refused-key-missing =
    .message = この Koboshi ゲートウェイを使うにはキーが必要ですが、リクエストにキーがありません。
    .suggestion = ゲートウェイ自身のキー（koboshi.yaml の keys に登録したもの）を、Bearer トークン、x-api-key、x-goog-api-key のいずれかで送信してください。AI プロバイダーの API キーは使えません。
refused-key-unknown =
    .message = リクエストのキーは、この Koboshi ゲートウェイのキーではありません。
    .suggestion = ゲートウェイの管理者が koboshi.yaml の keys に登録したキーを使ってください。AI プロバイダーの API キーは Koboshi が保持しているため、ここでは使えません。
refused-admin-key =
    .message = このゲートウェイの管理用キーがないか、間違っています。
    .suggestion = 管理用キー（koboshi.yaml の admin.sha256 にハッシュを登録したもの）を Bearer トークンとして送信してください。クライアント用のキーや AI プロバイダーの API キーは使えません。
refused-admin-local =
    .message = 管理用キーが設定されていないため、管理用 API はゲートウェイと同じマシンからしか使えません。
    .suggestion = koboshi.yaml に admin.sha256 を設定してそのキーを Bearer トークンとして送信するか、ゲートウェイのマシンから呼び出してください。
refused-admin-unset =
    .message = このゲートウェイではクライアントにキーが必要なため、管理用 API にも管理用キーが必要ですが、設定されていません。
    .suggestion = koboshi.yaml に admin.sha256 を設定し、そのキーを Bearer トークンとして送信してください。
refused-metrics =
    .message = メトリクスは、ゲートウェイと同じマシンからか、管理用キーを使った場合にだけ取得できます。
    .suggestion = 管理用キーを Bearer トークンとして送信するか、koboshi.yaml で serve.public_metrics を設定してください。
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
    .suggestion = 少し待ってから、もう一度送信してください。繰り返す場合は、koboshi.yaml の serve.memory を大きくしてください。
refused-busy =
    .message = ゲートウェイで読み込みを待っている大きなリクエストが多すぎます。
    .suggestion = 少し待ってから、もう一度送信してください。繰り返す場合は、同時に送信する大きなリクエストの数を減らしてください。
refused-origin =
    .message = { $origin } の Web ページからこのゲートウェイを呼び出すことはできません。
    .suggestion = ご自身のページであれば、そのオリジンを koboshi.yaml の serve.allowed_origins に追加してください。
refused-host =
    .message = このゲートウェイは { $host } という名前では応答しません。
    .suggestion = localhost か 127.0.0.1 で呼び出すか、その名前を koboshi.yaml の serve.allowed_hosts に追加してください。
refused-model =
    .message = モデル { $model } に対応するルートもプロバイダーも、このゲートウェイにはありません。
    .suggestion = つづりを確認するか、「プロバイダー名/モデル名」の形で指定するか、koboshi.yaml にルートを追加してください。利用できる名前は GET /v1/models で確認できます。
refused-no-provider =
    .message = このゲートウェイには AI プロバイダーが設定されていないため、モデル { $model } には応答できません。
    .suggestion = OPENAI_API_KEY、ANTHROPIC_API_KEY、GEMINI_API_KEY のいずれかを設定してゲートウェイを再起動するか、koboshi.yaml にプロバイダーを追加してください（koboshi init で作成できます）。API キーなしで試すには、モデル sim/ok を指定するか、koboshi serve --demo で起動してください。
refused-only-simulated =
    .message = このゲートウェイには模擬プロバイダーしか設定されていないため、モデル { $model } には応答できません。
    .suggestion = koboshi.yaml の providers に、AI プロバイダーとその API キーを追加してください。設定ファイルにプロバイダーが書かれているときは、環境変数の API キーだけではプロバイダーは追加されません。API キーなしで試すには、モデル sim/ok を指定してください。
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
    .suggestion = ファイルやメッセージを減らすか小さくするか、koboshi.yaml の serve.max_body_bytes を大きくしてください。
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
refused-query-time =
    .message = クエリパラメーター { $field } の値は、日時としても時間の長さとしても読み取れません。
    .suggestion = 日時は 2030-01-31T12:00:00Z、時間の長さは 2h のように指定してください。
refused-feed-full =
    .message = フィードを受信しているクライアントが多すぎます。
    .suggestion = いずれかを閉じてから、もう一度お試しください。
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

root-about = Koboshi は動作しています。AI API 用のゲートウェイです。プログラムは AI プロバイダーの代わりに Koboshi を呼び出します。Koboshi は失敗したリクエストを再試行し、必要に応じてほかのプロバイダーに切り替え、途切れたストリームを続きから再開します。Web 画面はありません。
root-hint = お使いの SDK やエージェントの base_url に、このアドレスを指定してください。OpenAI の SDK では末尾に /v1 を付け、Anthropic と Gemini の SDK では付けません。
root-own = 状態の確認と管理

## koboshi serve: 何が応答するか

serve-variables-unset = { $key }: `{ $target }` に必要な環境変数が設定されていません。{ $variables } を設定するか、`providers` にプロバイダーを書いてください
serve-port-used = { $address } で待ち受けできません（{ $why }）。このポートは別のプログラム（別の Koboshi など）が使用中です。--listen 127.0.0.1:ポート番号（または設定の `serve.listen`）で別のポートを選んでください
serve-no-address = { $address } で待ち受けできません（{ $why }）。このマシンにはこのアドレスがありません。--listen アドレス:ポート番号（または設定の `serve.listen`）で、このマシンのアドレスを選んでください
serve-port-reserved = { $address } で待ち受けできません（{ $why }）。1024 未満のポートは予約されています。--listen アドレス:ポート番号 で別のポートを選んでください
serve-cannot-listen = { $address } で待ち受けできません: { $why }
serve-demo = デモモードで動作しています。応答はすべて架空のものです。設定や環境変数の内容にかかわらず、AI プロバイダーには問い合わせません。
serve-no-key = API キーが見つかりません。応答できるのは sim/… という名前のモデルだけで、その応答は架空のものです。ほかのモデルはエラーになります。
serve-no-key-next = 次に、OPENAI_API_KEY、ANTHROPIC_API_KEY、GEMINI_API_KEY のいずれかを設定するか、koboshi.yaml にプロバイダーを追加してください（koboshi init で作成できます）。架空の応答ですべてを試すには: koboshi serve --demo
serve-sim-only = 設定にあるのは模擬プロバイダー（sim）だけで、AI プロバイダーはありません。応答は架空のもので、ほかのモデルはエラーになります。
serve-no-calls = 模擬プロバイダーは、モデル名（sim/ok?tools=yes）、tool_choice、プロンプトのいずれかで指示された場合を除き、ツール呼び出しを返しません。エージェントが実際に実行してしまうためです。

## ゲートウェイ自身の API キーが拒否されたとき

parked-resume = ゲートウェイの管理者が次のコマンドで再開するまで、停止したままです: { $command }
gateway-key-forbidden =
    .message = AI プロバイダーは、このゲートウェイに設定された API キーを受け付けましたが、この操作を許可していません。
    .suggestion = ゲートウェイの管理者に連絡してください（アカウントへの権限の付与、または別のモデルの利用が必要です）。お使いのキーが原因ではありません。
gateway-key-refused =
    .message = AI プロバイダーが、このゲートウェイに設定された API キーを受け付けませんでした。未設定か、誤りか、失効しています。
    .suggestion = ゲートウェイの管理者に連絡してください。お使いのキーが原因ではありません。待っても解決しません。

## 保護された呼び出しの終わり

spent-one = { $message }（{ $kind }、1 回試行）{ $suggestion }
spent-many = { $message }（{ $kind }、{ $count } 回試行）{ $suggestion }

## koboshi run

run-waits = { $key } はクールダウン中です（{ $reason }）。{ $until }まで待ちます（あと { $left }）。
run-rests = 起動しませんでした。{ $key } は { $until }までクールダウン中です（{ $reason }）。--patience の { $patience }より長いため、待たずに終了します。その時刻を過ぎてから、もう一度実行してください（終了ステータス 75）。
run-parked = 起動しませんでした。{ $key } は停止中です（{ $reason }）。原因を取り除いてから、次のコマンドで再開してください: { $command }（終了ステータス 69）
run-missing = { $program } が見つかりません。名前と PATH を確認してください（終了ステータス 127）。
run-refused = { $program } を実行できません: { $why }（終了ステータス 126）
run-again = コマンドが失敗したため（{ $reason }）、もう一度起動します。
run-others-first = ほかの実行が先に起動します

## Agents of a supervisor

agent-running = 実行中
agent-stopping = 停止処理中
agent-stopped = 管理者により停止
agent-held = クールダウンの終了待ち
agent-waiting = 次の起動待ち
