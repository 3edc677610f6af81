# Koboshi が人に伝える言葉（日本語）。id と変数は en.ftl と同じで、テストで照合します。
# 書き方: 何が・どの区間（このマシン、ゲートウェイ、プロバイダー）で起きたか、次にすることを一つ。平易に、短く。

## 障害の種類。理由によって助言が変わるものは kind-<種類>-<理由>

kind-connection-failed =
    .message = AI プロバイダーへの接続に失敗しました。リクエストがこのマシンのネットワークから出られなかったか、途中で切断されました。
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
    .suggestion = base_url の https と http の別とポートが正しいか、途中のプロキシやファイアウォールが妨げていないかを確認してください。
kind-connection-failed-certificate =
    .message = AI プロバイダーへの接続に失敗しました。接続先の証明書が、このマシンでは信頼されていません。
    .suggestion = 再試行しても解決しません。社内プロキシが通信を検査している場合は自社の CA 証明書を追加し、このマシンの時計と base_url のホスト名も確認してください。
kind-connection-failed-proxy =
    .message = AI プロバイダーへの接続に失敗しました。途中のプロキシが接続を通しませんでした。
    .suggestion = プロキシ設定（HTTPS_PROXY）のアドレスと認証情報を確認するか、プロバイダーのホストをプロキシの対象から外してください。
kind-timeout =
    .message = AI プロバイダーからの応答がタイムアウトしました。
    .suggestion = もう一度送信してください。繰り返す場合は、より速いモデルを使うか、設定の制限時間を延ばしてください。
kind-timeout-connect =
    .message = AI プロバイダーからの応答がタイムアウトしました。接続の制限時間内に接続できませんでした。
    .suggestion = このマシンのネットワーク、VPN、ファイアウォールを確認してください。接続の制限時間を延ばして効果があるのは、回線がとても遅い場合だけです。
kind-timeout-first-content =
    .message = AI プロバイダーからの応答がタイムアウトしました。リクエストは受け付けられましたが、最初の応答が制限時間内に届きませんでした。
    .suggestion = もう一度送信するか、別のモデルを使ってください。長いプロンプトや推論モデルでは、設定で最初の応答までの制限時間を延ばしてください。
kind-timeout-idle =
    .message = AI プロバイダーからの応答がタイムアウトしました。応答は始まりましたが、途中で無通信の制限時間を超えました。
    .suggestion = もう一度送信してください。考える時間の長いモデルでは、設定で無通信の制限時間を延ばしてください。
kind-timeout-total =
    .message = AI プロバイダーからの応答がタイムアウトしました。リクエスト全体の制限時間内に応答が完了しませんでした。
    .suggestion = 一度に頼む量を減らすか、設定で全体の制限時間を延ばしてください。
kind-unavailable =
    .message = AI サービスが一時的に利用できません。プロバイダーか、その手前のゲートウェイが停止または再起動しています。
    .suggestion = 数分おいてからもう一度お試しください。問題が続く場合は、システム管理者に連絡してください。
kind-unavailable-loading =
    .message = AI サービスが一時的に利用できません。モデルを読み込んでいるところです。
    .suggestion = 読み込みが終わるまで（通常は数分）待ってから、もう一度送信してください。
kind-unavailable-locked =
    .message = この会話では、別のリクエストがまだ処理中です。
    .suggestion = その応答が終わるのを待つか、停止してから、もう一度送信してください。
kind-connection-refused =
    .message = AI プロバイダーのアドレスで接続を受け付けていません。ポートが違うか、サービスが起動していません。
    .suggestion = base_url のホストとポートを確認してください。ご自身のサーバーであれば、起動してください。
kind-connection-closed =
    .message = 応答が完了する前に接続が切断されました。届いている内容は応答の一部だけです。
    .suggestion = もう一度送信してください。届いた部分を完成した応答として使わないでください。
kind-unauthorized =
    .message = API トークンが無効です。設定されていないか、誤っているか、取り消されています。
    .suggestion = このプロバイダーの有効な API トークン（API キー）を設定してから、もう一度送信してください。待っても解決しません。
kind-token-expired =
    .message = API トークンの有効期限が切れています。
    .suggestion = サインインし直すかトークンを更新してから、もう一度送信してください。
kind-permission-denied =
    .message = API へのアクセス権限がありません。キーは有効ですが、この使い方が許可されていません。
    .suggestion = アカウントの管理者に権限を依頼するか、権限のあるキーまたはモデルを使ってください。
kind-permission-denied-region =
    .message = API へのアクセス権限がありません。この国または地域からの利用は許可されていません。
    .suggestion = お使いの地域に対応しているプロバイダーかエンドポイントを使ってください。待っても解決しません。
kind-permission-denied-model =
    .message = API へのアクセス権限がありません。このアカウントでは、このモデルを使えません。
    .suggestion = 別のモデルを選ぶか、このモデルをアカウントで有効にしてもらってください。
kind-rate-limited =
    .message = リクエスト制限を超過しました。短い時間にリクエストが集中しています。
    .suggestion = しばらく待ってから再度お試しください。制限は自動的に解除されるため、設定の変更は不要です。
kind-rate-limited-concurrency =
    .message = リクエスト制限を超過しました。このアカウントで同時に実行中のリクエストが多すぎます。
    .suggestion = しばらく待ってから再度お試しください。繰り返す場合は、同時に動かすエージェントを減らしてください。
kind-quota-exceeded =
    .message = 利用可能なクォータを超過しました。このアカウントの利用枠を使い切っています。
    .suggestion = 利用枠が更新されるまで待つか、それまで別のアカウントかプロバイダーを使ってください。
kind-quota-exceeded-window =
    .message = 利用可能なクォータを超過しました。このアカウントの数時間または一週間の利用枠を使い切っています。
    .suggestion = 利用枠が更新されるまで待つか、それまで別のモデルかアカウント、プロバイダーを使ってください。更新前に試しても失敗します。
kind-quota-exceeded-day =
    .message = 利用可能なクォータを超過しました。このアカウントの今日の利用枠を使い切っています。
    .suggestion = プロバイダーの日付が変わるまで待つか（時間帯が異なる場合があります）、それまで別のアカウントかプロバイダーを使ってください。
kind-quota-exceeded-month =
    .message = 利用可能なクォータを超過しました。このアカウントの今月の利用枠を使い切っています。
    .suggestion = プロバイダーの画面で月の上限を引き上げるか、月が変わるまで別のアカウントかプロバイダーを使ってください。
kind-quota-exceeded-plan =
    .message = 利用可能なクォータを超過しました。このアカウントのプランには、この使い方が含まれていません。
    .suggestion = プランに含まれるモデルを選ぶか、プランを変更してください。待っても解決しません。
kind-quota-exceeded-billing =
    .message = 利用可能なクォータを超過しました。アカウントの残高がないか、支出の上限に達しています。
    .suggestion = プロバイダーの画面で、クレジットの追加、お支払い、または支出の上限の引き上げを行ってください。待っても解決しません。
kind-context-build-failed =
    .message = コンテキストの構築に失敗しました。
    .suggestion = プロバイダーには何も送信されていません。このメッセージのコードを添えて、システム管理者に連絡してください。
kind-context-too-large =
    .message = コンテキストがトークン制限を超過しています。会話が、モデルの読める長さを超えました。
    .suggestion = 質問を短くするか、会話をリセットしてください。より長い文脈を扱えるモデルを使う方法もあります。
kind-template-not-found =
    .message = プロンプトテンプレートが見つかりません。
    .suggestion = 設定にあるテンプレートの名前を確認してください。プロバイダーには何も送信されていません。
kind-invalid-request =
    .message = リクエストの内容に誤りがあり、AI プロバイダーが受け付けませんでした。
    .suggestion = プロバイダーの説明に従ってリクエストを直してください。同じ内容で送っても、また失敗します。
kind-invalid-request-capability =
    .message = このモデルは、リクエストに必要な機能に対応していません。
    .suggestion = 対応しているモデル（画像、ツール、構造化出力など）を選ぶか、その部分を外して送信してください。
kind-invalid-request-path =
    .message = リクエストの送信先が、プロバイダーに存在しません。
    .suggestion = base_url とパスを確認してください。/v1 の抜けや重複がよくある原因です。
kind-invalid-request-output-limit =
    .message = このモデルが書ける長さを超える出力を求めています。
    .suggestion = max_tokens を小さくしてから、もう一度送信してください。
kind-model-not-found =
    .message = モデルが見つかりません。名前が違うか、提供が終了したか、このアカウントでは使えません。
    .suggestion = モデル名のつづりを確認するか、プロバイダーの現在の一覧から選んでください。
kind-invalid-message =
    .message = セッションのメッセージを読み取れませんでした。
    .suggestion = クライアントが送るメッセージの形式を直してください。同じメッセージを送っても、また失敗します。
kind-message-too-large =
    .message = リクエストが、受け取れる大きさを超えています。
    .suggestion = ファイルや画像を小さくするか数を減らして、もう一度送信してください。
kind-response-invalid =
    .message = AI モデルからの応答が不正です。応答は届きましたが、使える内容ではありませんでした。
    .suggestion = もう一度送信してください。繰り返す場合は、別のモデルを使ってください。
kind-response-invalid-empty =
    .message = AI モデルからの応答が不正です。応答の中身が空でした。
    .suggestion = もう一度送信してください。繰り返す場合は、質問の書き方を変えるか、別のモデルを使ってください。
kind-response-invalid-tool-call =
    .message = AI モデルからの応答が不正です。ツール呼び出しを読み取れなかったため、ツールは実行していません。
    .suggestion = もう一度送信してください。繰り返す場合は、別のモデルを使うか、ツールのパラメーターを簡単にしてください。
kind-response-invalid-output-limit =
    .message = AI モデルからの応答が不正です。応答が完成する前に、出力の上限に達しました。
    .suggestion = max_tokens を大きくするか、短い応答を求めてください。
kind-response-invalid-not-api =
    .message = AI モデルからの応答が不正です。API の応答ではなく、ウェブページが返ってきました。
    .suggestion = base_url を確認してください。ホテルや社内のネットワークでログインが必要な場合は、先にブラウザーでログインしてください。
kind-content-filtered =
    .message = コンテンツフィルタにより応答がブロックされました。
    .suggestion = 表現を変えて送信してください。同じ内容のままでは、またブロックされます。
kind-overloaded =
    .message = AI モデルが過負荷状態です。プロバイダー側の処理能力が不足しています。
    .suggestion = 数分おいてからもう一度お試しください。お急ぎの場合は別のモデルを使ってください。
kind-tool-arguments-invalid =
    .message = AI モデルが書いたツール呼び出しの引数を読み取れませんでした。ツールは実行していません。
    .suggestion = モデルに呼び出しを直させてください。繰り返す場合は、別のモデルを使うか、ツールのパラメーターを簡単にしてください。
kind-agent-error =
    .message = エージェント自身のエラーで停止しました。
    .suggestion = エージェントのログの最後の数行を確認してから、もう一度起動してください。
kind-agent-error-turns =
    .message = 作業が終わる前に、エージェントがターン数の上限に達しました。
    .suggestion = 作業を小さく分けるか、ターン数の上限を上げてから、もう一度起動してください。
kind-tool-failed =
    .message = エージェントが呼び出したツールが失敗しました。
    .suggestion = ツールの報告を読み、原因を取り除いてから呼び出してください。
kind-tool-loop =
    .message = エージェントが、進展のないツール呼び出しを繰り返したため、停止しました。
    .suggestion = 次のメッセージで別のやり方を指示するか、ツールのエラーの原因を取り除いてください。
kind-call-depth-exceeded =
    .message = 最大関数呼び出し深度を超えました。
    .suggestion = 次のメッセージを送ると、回数は最初から数え直され、続けられます。作業を小さく分けると効果的です。
kind-spawn-failed =
    .message = このマシンでエージェントを起動できませんでした。
    .suggestion = コマンドが存在すること、実行権限があること、作業ディレクトリがあることを確認してください。
kind-process-failed =
    .message = エージェントのプロセスが異常終了しました。
    .suggestion = ログの最後の数行で原因を確認し、取り除いてから起動し直してください。
kind-process-failed-memory =
    .message = このマシンのメモリが足りなくなり、エージェントのプロセスが終了しました。
    .suggestion = 同時に動かすエージェントを減らすか、マシンまたはコンテナのメモリを増やしてください。
kind-process-failed-signal =
    .message = エージェントのプロセスが、外部からのシグナルで終了しました。
    .suggestion = 終了させたのが人か、システムか、コンテナの制限かを確認してから、もう一度起動してください。
kind-process-failed-turns =
    .message = ターン数の上限に達したため、エージェントのプロセスが終了しました。
    .suggestion = 作業を小さく分けるか、ターン数の上限を上げてから、もう一度起動してください。
kind-cooling-down =
    .message = この接続先は、先ほどの失敗のため休止中です。休止が終わるまでリクエストを送りません。
    .suggestion = 休止が終われば自動的に再開するため、操作は不要です。それまで別の接続先を使うこともできます。
kind-cooling-down-operator =
    .message = 運用担当者がこの接続先の使用を一時停止しています。
    .suggestion = ゲートウェイの運用担当者に確認するか、それまで別のモデルを使ってください。
kind-parked =
    .message = 停止中です。人が再開するまで動きません。
    .suggestion = koboshi status で理由を確認し、原因を取り除いてから再開してください。
kind-internal =
    .message = 内部エラーが発生しました。応答した側（プロバイダー、または間にある Koboshi）の問題です。
    .suggestion = 数分おいてからもう一度お試しください。問題が続く場合は、リクエスト ID を添えて、システム管理者に連絡してください。
kind-conversation-not-found =
    .message = 会話が見つかりません。
    .suggestion = 新しい会話を始めてください。前の会話は削除されたか、別のサーバーにあります。
kind-message-save-failed =
    .message = メッセージの保存に失敗しました。
    .suggestion = 文面を控えてから、もう一度送信してください。繰り返す場合は、ディスクの空き容量を確認してください。

## ツールの報告

tool-font =
    .message = ツールに必要なフォントがインストールされていません。
    .suggestion = フォントをインストールするか、今あるフォントを使うようエージェントに指示してください。
tool-missing-module =
    .message = ツールに必要なライブラリがインストールされていません。
    .suggestion = ツールが動いている環境に、そのライブラリをインストールしてください。
tool-missing-command =
    .message = ツールに必要なプログラムがインストールされていないか、PATH にありません。
    .suggestion = プログラムをインストールするか、その場所を PATH に追加してください。
tool-permission =
    .message = ツールに、ファイルやリソースへのアクセス権がありません。
    .suggestion = アクセス権を与えるか、別の場所で作業するようエージェントに指示してください。
tool-resource =
    .message = ツールの実行に必要なメモリやディスク容量などが足りません。
    .suggestion = 空きを増やすか、作業を小さく分けてください。
tool-plotting =
    .message = ツールがグラフを描画できませんでした。
    .suggestion = 描画ライブラリと出力の設定を確認するか（ファイルへの出力に画面は不要です）、より簡単なグラフを求めてください。
tool-file-io =
    .message = ツールがファイルを読み書きできませんでした。
    .suggestion = パスが存在するか、つづりが正しいかを確認してください。
tool-network =
    .message = ツールがネットワークに接続できませんでした。
    .suggestion = ツールが動いている環境のネットワークとプロキシの設定を確認してください。
tool-timeout =
    .message = ツールが制限時間内に終わりませんでした。
    .suggestion = 作業を小さく分けるか、ツールの制限時間を延ばしてください。
tool-syntax =
    .message = ツールに渡されたコードまたはコマンドに、構文エラーがあります。
    .suggestion = ツールが示した箇所を、エージェントに直させてください。
tool-type-or-value =
    .message = ツールが実行したコードが、型または値の誤りで失敗しました。
    .suggestion = ツールが示した箇所のデータを、エージェントに確認させてください。
tool-invalid-arguments =
    .message = ツールが受け付けない引数で呼び出されました。
    .suggestion = 呼び出しとツールのパラメーターを、エージェントに見比べさせてください。
tool-not-found-in-file =
    .message = ツールが変更しようとした文字列が、ファイルの中にありません。
    .suggestion = 編集の前に、エージェントにファイルを読み直させてください。
tool-auth =
    .message = ツール自身の認証が受け付けられませんでした。
    .suggestion = ツールが使うキーまたはサインインを更新してください。そのまま呼び出しても解決しません。
tool-rate-limit =
    .message = ツールの先にあるサービスが、呼び出しの回数を制限しています。
    .suggestion = しばらく待ってから、ツールを呼び出してください。
tool-tool-missing =
    .message = エージェントが、ここにはないツールを呼び出しました。
    .suggestion = ツールを接続するか、使えるツールをエージェントに伝えてください。
tool-test-failure =
    .message = テストは実行されましたが、失敗したものがあります。
    .suggestion = ツール自体は正常です。失敗したテストをエージェントに読ませ、コードを直させてください。
tool-other =
    .message = ツールがエラーを報告しました。
    .suggestion = ツールの報告を読み、原因を取り除いてから呼び出してください。

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
json-what-not-an-object = 引数は一つの JSON オブジェクトでなければなりません。
json-what-duplicate-key = 引数に同じキーが二度あり、どちらの値が正しいか判断できません。
json-what-several-objects = 一つの呼び出しの引数は一つの JSON オブジェクトですが、複数送られました。
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

## いつ再試行すればよいか、運用担当者の理由

try-again-in = { $length }後にもう一度お試しください。
try-again-after = 再開予定: { $time }
operator-reason = 理由: { $reason }。

## ほかに手段がないときの応答

static-unavailable = 申し訳ありません。現在サービスが利用できません。しばらくしてからもう一度お試しください。
unavailable-long =
    申し訳ございません。AI アシスタントが現在利用できません。

    しばらく時間をおいてから再度お試しください。
    問題が続く場合は、システム管理者にお問い合わせください。
static-notice = AI サービスが一時的に利用できないため、事前定義された応答を表示しています。

## 説明の見出し

label-what = 何が起きたか
label-kind = 種類
label-code = コード
label-whose = 原因の所在
label-do = 次にすること
label-wait = いつまで待つか
label-affects = 影響の範囲
label-sure = 確からしさ
label-said = 相手側の説明
label-reason = ログ上の理由
label-retry = 再試行できるか
label-same = 同じ接続先でもう一度
label-other = 別の接続先で
label-later = 時間をおいてご自身で
label-seen = { $line } 行目、ルール { $rule } による判定
label-seen-from-end = 末尾から { $line } 行目、ルール { $rule } による判定

origin-provider = AI プロバイダー
origin-transport = このマシンとプロバイダーの間のネットワーク
origin-tool = エージェントが呼び出したツール
origin-process = エージェントのプロセス
origin-client = リクエスト自体
origin-koboshi = Koboshi 自身

scope-request = このリクエストだけ
scope-key = このキーを使うものすべて
scope-account = このアカウントを使うものすべて
scope-model = このモデルを使うものすべて
scope-provider = このプロバイダーを使うものすべて
scope-network = このマシンから外への通信すべて

confidence-low = 不確か（ステータスか終了コードしか手がかりがありません）
confidence-medium = おおむね確か（文言から判断しました）
confidence-high = 確か（コード、ヘッダー、イベントに明記されています）

answer-yes = はい
answer-no = いいえ

nothing-wrong = 問題は見つかりませんでした。
wait-none = 待ち時間は示されていません。
wait-until = { $time } まで（あと { $left }）
wait-over = 示された待ち時間は過ぎました。再開できます。

## 記憶している状態

status-clear = すべてのターゲットを利用できます。
status-key-clear = { $key } は利用できます。
status-nothing-known = まだ何も記録されていません（{ $place } がありません）。
status-store = ストア { $place } から読み込みました。
status-remote = ゲートウェイ { $place } から取得しました（ストア: { $store }）。
status-trouble = 現在ストアを読み込めないため、ゲートウェイ自身が把握している状態を表示しています: { $why }
status-gateway-running = ゲートウェイ { $address } の最終報告は { $ago }前です。
status-gateway-silent = ゲートウェイ { $address } からの報告は { $time } が最後です。停止しているか、ストアに接続できていません。
status-gateway-stopped = ゲートウェイ { $address } は { $time } に停止しました。
status-no-gateway = このストアを使ったゲートウェイはまだありません。
status-until = { $time } まで（あと { $left }）
status-since = { $time } から
status-streak = 連続失敗 { $count } 回
status-openings = 連続で { $count } 回オープン
status-node = { $node } で検出
status-probing = 次のリクエストで復旧を確認します
status-due = 次のリクエストで復旧を確認します
status-resume = 原因を取り除いてから、次のコマンドで再開してください: { $command }
status-unreadable = { $slot } は読み取れないため、そのまま残しました: { $why }
state-parked = 停止中
state-cooling = クールダウン中
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
limit-quota = 長期の利用枠の上限
limit-operator = 管理者による設定
resume-done = { $key } を再び利用できるようにしました。
resume-nothing = { $key } はクールダウン中ではないため、再開するものはありません。
resume-above = { $key } が原因で利用できません。次のコマンドで再開できます: koboshi resume { $key }
cool-done = { $key } をクールダウンしました: { $until }
key-unknown = キー { $key } を持つターゲットはありません。
key-unchanged = 何も変更していません。
key-near = 次のいずれかではありませんか: { $near }
key-force = まだリクエストのないモデルなど、このキーで間違いない場合は --force を付けてください。
key-unknowable = キー { $key } を持つターゲットがあるか確認できません。設定ファイルが見つからず、このストアを使ったゲートウェイもありません。--config で設定ファイルを、または --url でゲートウェイを指定するか、--force を付けてください。
journal-empty = 該当する記録はありません。
journal-pruned = 削除した記録: { $count } 件

## スーパーバイザーのログに残る理由

reason-quota = 利用枠の使い切り
reason-billing = 残高または支出上限の使い切り
reason-rate-limit = 短時間のリクエスト過多
reason-overloaded = プロバイダーの過負荷または停止
reason-auth = キーまたはサインインの拒否
reason-context = 長すぎる会話
reason-network = ネットワークの障害
reason-error = その他のエラー
reason-operator = 管理者による設定
reason-none = 障害なし

## ループの検出。何が繰り返され、何をすればよく、何を尋ねるか。note はモデル向け

guard-what-similar-errors = 同じエラーが { $count } 回続けて発生しました（{ $tools }）。
guard-what-alternating-errors = 同じ数種類のエラーが交互に発生しています。そのうちの一つは { $count } 回目です（{ $tools }）。
guard-what-any-errors = { $count } 回続けて失敗しました。エラーの内容はそれぞれ異なります（{ $tools }）。
guard-what-same-call = 同じ呼び出しに同じ結果が { $count } 回返りました（{ $tools }）。
guard-what-cycle = 同じ数個の呼び出しが、同じ結果のまま { $count } 周しました（{ $tools }）。
guard-what-stagnation = 引数を変えて { $count } 回試しましたが、結果はいずれも中身のないものでした（{ $tools }）。
guard-what-depth = 最大関数呼び出し深度を超えました。一つのメッセージに対するツール呼び出しは { $limit } 回までですが、{ $responses } 回の応答で { $calls } 回になりました。
guard-what-width = 一度の応答で { $count } 個のツールが同時に呼び出されました。上限は { $limit } 個です。
guard-label-example = 返ってきた結果の例:
guard-label-steps = 次にできること:
guard-step-use-installed = インストール済みのものをエージェントに一覧させ、その中から使わせてください。
guard-step-other-place = エージェントが読み書きしてよいフォルダーを伝えてください。
guard-step-free-room = メモリとディスクの空きを確認し、前の試行で残ったプロセスを終了してください。
guard-step-figure-to-file = グラフはファイルへの出力を指示してください。画面は不要です。
guard-step-list-first = ファイルを開く前に、エージェントにフォルダーの中を一覧させてください。
guard-step-check-service = ツールが動いているマシンから、そのサービスが応答するか確認してください。
guard-step-smaller = 作業を小さく分けて依頼してください。
guard-step-show-place = 書き直す前に、該当箇所の前後をエージェントに表示させてください。
guard-step-print-values = 扱っている値と型を、エージェントに出力させてください。
guard-step-give-example = 正しい呼び出しの例を一つ、エージェントに示してください。
guard-step-read-again = エージェントにファイルを読み直させ、置き換える文字列をそこから写させてください。
guard-step-sign-in = この会話の外で、ご自身でサインインするかキーを更新してください。
guard-step-wait-then-go-on = 数分待ってから、続けるよう伝えてください。
guard-step-name-tools = 使えるツールをエージェントに伝えてください。
guard-step-one-test = 失敗しているテストを、エージェントに一つずつ直させてください。
guard-step-other-words = 別の検索語か、別の探し場所を伝えてください。
guard-step-say-what-is-known = ここまでに分かったことと足りないものを、エージェントにまとめさせてください。
guard-step-go-on = 順調に進んでいた場合は、続けるよう伝えてください。回数は最初から数え直されます。
guard-step-raise-limit = このような長い作業が普段から必要な場合は、設定で上限を上げてください。
guard-step-other-way = 同じ目的への別のやり方を依頼してください。
guard-question-fix-or-other-way = 先に原因を取り除きますか。それとも、エージェントに別のやり方を試させますか。
guard-question-what-next = エージェントに、何を変えて進めさせますか。
guard-question-go-on = エージェントに続けさせますか。
guard-note-errors = { $tools } が同じメッセージで { $count } 回失敗しました: { $pattern }。同じ呼び出しを繰り返しても成功しません。まず原因を調べるか、別のやり方を選んでください。次に同じ失敗をすると、ツールは呼び出せなくなります。
guard-note-repeats = { $tools } の呼び出しに、同じ結果が { $count } 回返っています。繰り返しても新しいことは分かりません。すでに分かっていることを使うか、別のやり方を選んでください。このまま続けると、ツールは呼び出せなくなります。
guard-note-depth = このメッセージに対するツール呼び出しは { $calls } 回で、上限は { $limit } 回です。分かっていることから、今すぐ回答してください。
guard-note-errors-only = { $tools } が同じメッセージで { $count } 回失敗しました: { $pattern }。同じ呼び出しを繰り返しても成功しません。まず原因を調べるか、別のやり方を選んでください。
guard-note-repeats-only = { $tools } の呼び出しに、同じ結果が { $count } 回返っています。繰り返しても新しいことは分かりません。すでに分かっていることを使うか、別のやり方を選んでください。
guard-note-depth-only = このメッセージに対するツール呼び出しは { $calls } 回です。通常は { $limit } 回で足ります。どうしても必要なものがなければ、分かっていることから回答してください。
guard-note-width = 一度の応答で { $count } 個のツールが同時に呼び出されました。上限は { $limit } 個です。一度に呼び出す数を減らしてください。
guard-note-width-only = 一度の応答で { $count } 個のツールが同時に呼び出されました。通常は { $limit } 個で足ります。一度に呼び出す数を減らしてください。
guard-note-stop = このメッセージに対しては、これ以上ツールを呼び出せません。試したこと、妨げになっていること、ここまでに分かったことを短く利用者に伝え、どう進めるか尋ねてください。

## koboshi init

init-done = { $place } を書き出しました。
init-next = 次に、OPENAI_API_KEY を設定するか別のプロバイダーを書き、`koboshi check` で確かめてから `koboshi serve` を起動してください。

## koboshi serve

serve-listens = Koboshi は { $place } で待ち受けています
serve-label-providers = プロバイダー
serve-label-config = 設定
serve-label-store = 保存先
serve-no-config = なし（既定値と環境変数を使います）
serve-simulated = 設定にも環境変数のキーにもプロバイダーが見つかりません。内蔵の模擬プロバイダーがすべてに、意味のない文で応答します。エージェントが実際に実行してしまうため、モデル名で求めない限り（sim/ok?tools=yes）ツール呼び出しは作りません。
serve-try = 試してみるには:
