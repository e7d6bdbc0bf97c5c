package hdiutil

// localized are parts of the reasons that tools print in other languages of
// macOS, by class and language (BCP 47, sorted). The frame around a reason is
// English ("hdiutil: create failed - …"); the reason is the system's text for an
// errno, or the one of the disk image framework, in the language of the user,
// in any environment. Stems are used, since the texts change with the releases.
// "|" separates alternatives; "*" is any text within the line.
var localized = map[Class]string{
	Auth: `ar المصادقة|عبارة الدخول غير|كلمة السر غير; ca d'autenticació|contrasenya incorrecta;
		cs ověřování totožnosti|nesprávné*heslo; da godkendelsesfejl|forkert adgangskode; de authentifizierungsfehler|
		fehler b*authentifizier|authentifizierung fehlge|falsches passwort|falsches kennwort|passwort*falsch|
		passwort*nicht korrekt; el ελέγχου ταυτότητας|εσφαλμένη συνθηματική; es autenticación|contraseña*incorrecta;
		fi todennus|väärä salaus|väärä salasana; fr d'authentification|phrase secrète incorrecte|
		mot de passe*incorrect; he שגיאת אימות|סיסמה לא תקין|סיסמה שגוי; hi प्रमाणन|ग़लत पास|गलत पास; hr greška autor|
		greška autent|netočna lozinka; hu hitelesítési hiba|helytelen jel; id kesalahan pengesahan|autentikasi|
		frasa sandi salah|kata sandi salah; it autenticazione|frase chiave errata|password errata|
		password non corretta; ja 認証エラー|認証に失敗|認証できません|パスフレーズ*正しく|パスワード*正しく|パスワード*違; ko 인증 오류|인증 실패|인증에 실패|올바르지 않은 암호|
		암호*올바르지|암호*틀; ms ralat pengesahan|frasa laluan salah; nb autentiserings|feil passord; nl authenticatie|
		onjuiste wachtzin|onjuist wachtwoord; pl błąd uwierzytelni|uwierzytelnianie nie|nieprawidłowe hasło;
		pt autenticação|senha*incorreta|palavra-passe incorreta; ro autentificare|frază de acces incorect|
		parolă incorect; ru аутентификаци|неверная кодовая|неверный пароль|неправильный пароль; sk chyba autent|
		nesprávne heslo; sv autentiserings|felaktig lösen|fel lösen; th การตรวจสอบสิทธิ์|รหัสผ่านไม่ถูกต้อง;
		tr kimlik doğrulama|parola*doğru değil|parola yanlış|yanlış parola; uk автентифікації|неправильна фраза|
		неправильний пароль; vi xác thực|mật khẩu không đúng|sai mật khẩu; zh-Hans 认证错误|认证失败|鉴定错误|验证错误|密码*不正确|密码错误;
		zh-Hant 認證錯誤|認證失敗|認證發生錯誤|密語錯誤|密語不正確|密碼錯誤|密碼不正確`,
	Busy: `ar مشغول; ca ocupat; cs zaneprázdněn|je používán; da optaget|i brug; de belegt|in verwendung|in benutzung|
		wird verwendet; el απασχολημέν; es ocupad|en uso|texto no disponible; fi varattu|käytössä; fr occupé|
		en cours d'utilisation|en service; he עסוק|בשימוש; hi व्यस्त; hr zauzet|u upotrebi; hu foglalt|használatban;
		id sibuk|sedang digunakan; it occupat|in uso; ja 使用中|ビジー; ko 사용 중|사용중; ms sibuk; nb opptatt|i bruk;
		nl in gebruik|bezet; pl zajęt|są używane|jest używan|używany|w użyciu; pt ocupado|em utilização|em uso;
		ro ocupat|în uz; ru занят|используется; sk zaneprázdnen|používa sa; sv upptag|används; th แหล่งข้อมูลไม่ว่าง|
		ทรัพยากรไม่ว่าง|ไฟล์ข้อความไม่ว่าง|กำลังใช้งาน; tr meşgul|kullanımda; uk зайнят|у роботі|використовується;
		vi đang bận|đang được sử dụng; zh-Hans 资源忙|正忙|忙碌|文件忙|占用|正在使用|正被使用; zh-Hant 忙碌|忙線|使用中`,
	Canceled: `ar إلغاء; ca cancel·la; cs zrušena; da annulleret|annullerede; de abgebrochen; el ακυρώθηκε|ακύρωσε;
		es operación cancelada|canceló|ha cancelado; fi kumottu|kumosi|perui|peruttu; fr annulé; he בוטלה; hi रद्द;
		hr poništ; hu visszavon|megszakította; id dibatalkan|membatalkan; it annullat; ja キャンセル; ko 취소; ms dibatalkan|
		membatalkan; nb handling avbrutt|ble avbrutt|avbrøt; nl geannuleerd|afgebroken; pl anulowan|anulował;
		pt operação*cancelada; ro anulat; ru отменен; sk zrušen|zrušil; sv avbröt; th ยกเลิก; tr vazgeç|iptal;
		uk скасован|скасував; vi bị hủy|bị*hủy|dùng hủy; zh-Hans 取消; zh-Hant 取消`,
	Damaged: `ar صورة*تالفة|اختباري غير صالح|التحقق من صورة; ca imatge*malmes|suma no vàlida|
		verificació de la imatge*fallat; cs poškozen*obraz|obraz*poškozen|kontrolní součet|ověřování obrazu*selhalo;
		da ødelagt billede|billeddata ødelagt|diskbilled*beskadiget|ugyldig checksum|kontrol af diskbillede;
		de defektes image|image*beschädigt|beschädigtes image|ungültige prüfsumme|image-überprüfung fehl;
		el κατεστραμμέν*είδωλο|κατεστραμμέν*ειδώλου|είδωλο*κατεστραμμένο|άθροισμα ελέγχου|επαλήθευση του ειδώλου;
		es imagen*dañad|imagen*corrupt|suma no válida|suma de comprobación|verificación de la imagen|
		verificar la imagen; fi vioittunut|vahingoittunut|tarkistussumma|levytiedoston tarkistus; fr image*endommagé|
		image*corrompu|somme de contrôle|vérification de l'image; he דמות*פגומ|סיכום ביקורת|אימות דמות הכונן נכשל;
		hi इमेज*करप्ट|करप्ट इमेज|चेकसम|इमेज सत्यापन; hr pokvaren image|oštećen*slik|kontrolni zbroj|provjera slike;
		hu korrupt lemezkép|lemezkép*sérült|ellenőrzőösszeg|lemezkép ellenőrzése; id image rusak|image disk rusak|
		ceksum|verifikasi image; it immagine*danneggiat|immagine*corrott|checksum non valid|somma di controllo|
		verifica dell'immagine; ja イメージ*壊れて|イメージ*破損|破損*イメージ|チェックサム|イメージを検証でき; ko 손상된*이미지|이미지*손상|체크섬|이미지 확인 실패;
		ms imej*tercemar|tambah semak|pengesahan imej; nb ødelagt diskfil|diskfil*ødelagt|sjekksum|kontrollsum|
		verifisering av diskfil; nl beschadigde schijfkopie|schijfkopie*beschadigd|controlegetal|
		schijfkopieverificatie; pl obraz*uszkodzon|uszkodzony obraz|suma kontrolna|weryfikacja obrazu;
		pt imagem*corrompid|imagem*danificad|soma de verificação|checksum inv|verificação da imagem; ro imagin*corupt|
		imagin*deterior|sumă de control|verificarea imaginii; ru поврежд*образ|образ*поврежд|контрольная сумма|
		проверке образа; sk poškoden*obraz|obraz*poškoden|kontrolný súčet|overovanie obrazu; sv skadad avbild|
		avbild*skada|kontrollsumma|skivavbildsverifiering; th ภาพดิสก์เสีย|เช็คซัม|ยืนยันภาพดิสก์ไม่สำเร็จ;
		tr bozuk görüntü|görüntü*boz|sağlama toplamı|görüntüsü doğrulanamadı; uk пошкоджен*образ|образ*пошкоджен|
		контрольна сума|перевірки образу; vi hình ảnh bị hỏng|hình ảnh bị lỗi|ảnh đĩa*bị hỏng|kiểm tra tổng|
		xác minh ảnh đĩa; zh-Hans 破坏的映像|映像*损坏|损坏的*映像|校验和|映像验证失败; zh-Hant 映像*損毀|影像*損毀|損毀的*映像|核對碼|映像*驗證失敗`,
	Exists: `ar الملف موجود|غير فارغ; ca ja existeix|no està buit; cs soubor existuje|již existuje|není prázdný;
		da arkiv findes|arkivet findes|findes allerede|ikke tomt; de datei existiert|existiert bereits|
		ordner nicht leer|nicht leer; el αρχείο υπάρχει|υπάρχει ήδη|δεν είναι κεν; es archivo existente|ya existe|
		no está vacío; fi tiedosto olemassa|tiedosto on olemassa|jo olemassa|ei tyhjä|ei ole tyhjä; fr fichier existe|
		existe déjà|répertoire non vide|pas vide; he הקובץ קיים|כבר קיים|אינה ריקה; hi मौजूद है|ख़ाली नहीं|खाली नहीं;
		hr datoteka postoji|već postoji|nije prazan; hu fájl létezik|már létezik|nem üres; id file ada|sudah ada|
		tidak kosong; it file esiste|esiste già|non vuota; ja ファイルが存在し|すでに存在|既に存在|すでにあり|空ではありません; ko 파일 존재|파일이 존재|
		이미 존재|이미 있|비어있지|비어 있지; ms fail wujud|sudah wujud|bukan kosong; nb filen finnes|finnes allerede|ikke tom;
		nl bestaat al|niet leeg; pl plik istnieje|już istnieje|nie jest pusty; pt arquivo existe|já existe|
		ficheiro existente|não está vazio|não vazio; ro fișierul există|există deja|nu este gol; ru файл существует|
		уже существует|непустая|не пуст; sk súbor existuje|už existuje|nie je prázdny; sv finns redan|inte tom;
		th อยู่แล้ว|ไม่ว่างเปล่า; tr zaten var|dosya var|boş değil; uk уже існує|вже існує|не порожн; vi tệp tồn tại|
		đã tồn tại|không trống; zh-Hans 已经存在|已存在|非空|不为空; zh-Hant 已存在|已經存在|不是空的`,
	InputOutput: `ar الإدخال/الإخراج|خطأ في الجهاز; ca entrada/sortida|error de dispositiu; cs vstupu/výstupu|
		chyba zařízení; da i/o-fejl|input/output-fejl|fejl på enhed; de ein-/ausgabe|eingabe-/ausgabe|e/a-fehler|
		gerätefehler; el εισόδου/εξόδου|σφάλμα συσκευής; es entrada/salida|error del dispositivo; fi i/o-virhe|
		siirräntävirhe|laitevirhe; fr entrée/sortie|erreur du périphérique|erreur d'appareil; he פלט/קלט|קלט/פלט|
		שגיאת התקן; hi इनपुट/आउटपुट|डिवाइस एरर; hr ulazno/izlazna|greška uređaja; hu kimeneti/bemeneti|
		bemeneti/kimeneti|eszközhiba; id input/output|kesalahan perangkat; it input/output|errore del dispositivo|
		errore di i/o; ja 入出力|装置のエラー; ko 입/출력|입출력|장치 오류; ms input/output|ralat peranti; nb inn-/utdata|i/u-feil|
		enhetsfeil; nl invoer-/uitvoer|in-/uitvoer|apparaatfout; pl we/wy|wejścia/wyjścia|błąd urządzenia;
		pt entrada/saída|erro de dispositivo|erro do dispositivo; ro intrare/ieșire|eroare dispozitiv; ru ввода/вывода|
		ввода-вывода|ошибка устройства; sk vstupno/výstupná|chyba zariadenia; sv in-/utmatning|in-/utdata|i/o-fel|
		enhetsfel; th ข้อผิดพลาด i/o|อุปกรณ์ผิดพลาด; tr giriş/çıkış|aygıt hatası; uk вводу/виводу|введення-виведення|
		помилка пристрою; vi nhập/xuất|vào/ra|lỗi thiết bị; zh-Hans 输入/输出|输入输出|设备错误; zh-Hant 輸入/輸出|輸入輸出|裝置錯誤`,
	Invalid: `ar وسيطة غير صالحة; ca argument no vàlid; cs neplatný argument; da ugyldigt argument;
		de ungültiges argument|ungültiger parameter; el έγκυρο όρισμα; es argumento no válido|argumento inválido;
		fi virheellinen argumentti|kelpaamaton argumentti; fr paramètre invalide|argument non valide|argument invalide|
		paramètre non valide; he ארגומנט; hi आर्ग्युमेंट; hr nevažeći argument; hu érvénytelen argumentum;
		id argumen tidak; it argomento non valido; ja 引数; ko 않은 변수|인수; ms argumen tidak; nb ugyldig argument;
		nl ongeldig argument; pl nieprawidłowy argument|niepoprawny argument; pt argumento inválido;
		ro argument nevalid|argument invalid; ru неверный аргумент|недопустимый аргумент; sk neplatný argument;
		sv ogiltigt argument; th อาร์กิวเมนต์; tr geçersiz değişken|geçersiz argüman|geçersiz bağımsız;
		uk неправильний аргумент|недійсний аргумент; vi đối số; zh-Hans 参数|自变量; zh-Hant 引數|參數`,
	Locked: `ar مؤقت; ca temporalment; cs dočasně; da midlertidig; de zeitweilig|vorübergehend|temporär; el προσωρινά;
		es temporalmente|momentáneamente; fi väliaikaisesti|tilapäisesti; fr temporairement|momentanément; he זמנית;
		hi अस्थायी; hr privremeno; hu átmenetileg|ideiglenesen; id tersedia*sementara|sementara*tersedia;
		it momentaneamente|temporaneamente; ja 一時的に; ko 일시; ms tersedia*sementara; nb midlertidig; nl tijdelijk;
		pl czasowo|chwilowo; pt temporariamente|momentaneamente; ro indisponibil; ru временно; sk dočasne; sv just nu|
		tillfälligt; th ชั่วคราว; tr geçici olarak; uk тимчасово; vi tạm thời; zh-Hans 暂时|临时不可用|暂不可用; zh-Hant 暫時`,
	NoDevice: `ar تكوين الجهاز; ca no configurat; cs nakonfigurov; da ikke konfigurer; de nicht konfiguriert;
		el παράμετροι της συσκευής|δεν έχει διαμορφωθεί|δεν έχει ρυθμιστεί; es no configurado|no está configurado;
		fi ei ole määritetty|ei ole konfiguroitu; fr non configuré|pas configuré; he אינו מוגדר|לא הוגדר|לא מוגדר;
		hi कॉन्फ़िगर; hr nije postavljen|nije konfigur; hu konfigur; id tidak dikonfigurasi; it non configurato;
		ja 構成されていません|設定されていません; ko 구성되지; ms tidak dikonfigurasi; nb ikke konfigurer; nl niet geconfigureerd;
		pl skonfigurowan; pt não configurado|não está configurado; ro nu este configurat|neconfigurat; ru не сконфигур|
		не настроено; sk nie je nastaven|nie je nakonfig; sv inte inställd|inte konfigur|ej konfigur; th กำหนดค่า;
		tr ayarlanmamış|yapılandırılma; uk не сконфігур|не налаштовано; vi cấu hình; zh-Hans 未配置|没有配置|尚未配置;
		zh-Hant 設定裝置|未設定|未配置`,
	NoFileSystem: `ar ملفات قابلة للتحميل; ca sistemes*muntar; cs připojitelné soubor|připojitelný soubor;
		da systemer, der kan aktiveres|system, der kan aktiveres; de aktivierbare*dateisystem|mountbare*dateisystem|
		mountfähige*dateisystem; el προσαρτώνται|προσαρτήσιμα; es archivos*montar|archivos montable;
		fi kelvollisia tiedostoj|käyttökelpoisia tiedostoj|liitettäviä tiedostoj; fr fichiers montable|
		fichiers pouvant être monté; he קבצים שניתן להעלות; hi माउंट करने योग्य; hr sustava*podignuti|sustav*podignuti;
		hu felcsatolható; id sistem file yang dapat; it file system attivabil|file system montabil|
		file system da attivare; ja マウントできる*ファイル|マウント可能な*ファイル|マウント可能な*システム; ko 마운트 가능|마운트할 수 있는;
		ms sistem fail boleh lekap; nb aktiverbare filsystem|monterbare filsystem; nl activeerbare|koppelbare;
		pl niemontowalny|do zamontowania|montowalnych; pt não montáv|montar sistema de fich|arquivos montáv|
		ficheiros montáv|possam ser montad; ro fișiere de montat|fișiere montabil; ru нет подключ|подключаемых файл|
		монтируемых|смонтировать; sk pripojiteľné súbor; sv filsystem som*anslutas|monterbara filsystem|monteringsbara;
		th ระบบไฟล์ที่; tr bağlanabilir*dosya sistem|bağlanabilen dosya sistem; uk файлових систем;
		vi hệ thống tệp có thể; zh-Hans 装载的文件系统|挂载的文件系统|载入的文件系统; zh-Hant 裝載的檔案系統|掛載的檔案系統|載入的檔案系統`,
	NoHelper: `ar عمليات تابعة; ca processos secundaris; cs podřízené procesy|podřízený proces;
		da underliggende processer|underprocesser; de untergeordneten prozess|kindprozess; el απόγονες|
		θυγατρικές διεργ; es procesos secundarios|procesos hijo; fi lapsiprosess; fr processus enfant|processus fils;
		he תהליכים בנים|תהליכי בן; hi चाइल्ड प्रोसेस; hr pod-procesa|podprocesa; hu gyerekfolyamat|gyermekfolyamat;
		id proses turunan|proses anak; it processo figlio|processi figli; ja 子プロセス; ko 자식 프로세스|하위 프로세스; ms proses anak;
		nb underordnede prosess|barneprosess; nl onderliggend; pl procesów potomnych; pt processo secundário|
		nível inferior|processos filho|processo filho; ro proces fiu|procese fiu; ru дочерн; sk podriadené procesy;
		sv underordnade process|barnprocess; th กระบวนการลูก; tr bağlı işlem|alt süreç; uk процесу-нащадка|дочірн;
		vi quy trình con|tiến trình con; zh-Hans 子进程; zh-Hant 子程序|子行程`,
	NoMemory: `ar بالذاكرة|الذاكرة; ca memòria; cs paměť|paměti; da hukommelse; de speicher*zugewiesen|
		genügend*speicher|arbeitsspeicher; el μνήμη; es memoria; fi muistinvaraus|muisti ei; fr mémoire; he זכרון|
		זיכרון; hi मेमोरी; hr memorij; hu memória; id memori; it memoria; ja メモリ; ko 메모리; ms memori; nb minne;
		nl geheugen; pl pamięci; pt memória; ro memoria nu|memorie; ru памят; sk pamäť; sv minne; th หน่วยความจำ;
		tr bellek; uk пам'ят; vi bộ nhớ; zh-Hans 内存; zh-Hant 記憶體`,
	NoSpace: `ar لا توجد مساحة; ca queda espai|espai insuf; cs nezbylo*místo|dostatek místa|žádné*místo|není*místo;
		da ingen plads|ikke*plads; de kein platz|speicherplatz|nicht genügend platz|nicht genug platz; el χώρος στη|
		επαρκής χώρος; es queda espacio|espacio insuf|suficiente espacio|sin espacio|espacio disponible; fi ole*tilaa|
		tila ei riitä|tila loppu; fr plus d'espace|espace insuf|pas assez d'espace|espace disponible; he נותר מקום|
		מספיק מקום; hi जगह; hr prostora; hu maradt hely|elég hely|nincs*hely; id ruang; it spazio; ja 空き領域|空き容量|
		空き*ありません; ko 공간; ms ruang; nb ledig plass|nok plass; nl apparaat is vol|schijf is vol|ruimte; pl miejsca;
		pt espaço; ro spațiu; ru нет*места|места на|недостаточно места|свободного места; sk miesto|miesta;
		sv utrymme kvar|med utrymme|slut på; th พื้นที่; tr yer kalmadı|yeterli*alan|yeterli yer|boş yer;
		uk місця на пристрої|вільного місця|недостатньо місця|немає місця; vi dung lượng; zh-Hans 空间; zh-Hant 空間`,
	NotFound: `ar لا يوجد ملف|غير موجود; ca no existeix; cs neexistuje|nenalezen|nebyl nalezen; da findes ikke|
		ikke fundet; de existiert keine|existiert nicht|nicht gefunden|keine solche datei|nicht vorhanden;
		el δεν υπάρχει|δεν βρέθηκε; es no existe|no se encontró|no encontrad|no se ha encontrado; fi ei tiedostoa|
		ei löydy|ei löytynyt|ei ole olemassa; fr inexistant|introuvable|aucun fichier|n'existe pas; he אין קובץ|
		לא נמצא; hi कोई ऐसी फ़ाइल|ऐसी कोई|नहीं मिल; hr nema takve|ne postoji|nije pronađen; hu nincs ilyen|
		nem található|nem létezik; id tidak ada file|tidak ditemukan; it inesistente|non esiste|non trovat|
		nessun file o; ja ファイルまたはディレクトリ|ファイルやディレクトリ|ファイルもディレクトリ|見つかりません|存在しません; ko 파일 또는 디렉|파일이나 디렉|찾을 수 없;
		ms tiada fail|tidak ditemui; nb finnes ikke|ikke funnet; nl bestaat niet|niet gevonden; pl brak takiego|
		nie ma takiego|nie istnieje|nie znaleziono; pt não existe|diretório inexistente|não encontrad; ro nu există un|
		nu există fișier|nu există|nu a fost găsit; ru не существ|нет такого|не найден; sk žiadny podobný|žiadny taký|
		neexistuje|nenašiel|nebol nájden; sv finns inte|hittades inte|ingen sådan; th ไม่มีไฟล์|ไม่พบ;
		tr böyle bir dosya|bulunamadı|mevcut değil; uk немає такого|не існує|не знайдено; vi không có tệp|
		không tìm thấy|không tồn tại; zh-Hans 无此文件|没有那个文件|没有此文件|没有这个文件|没有此类文件|没有这样的文件|没有该文件|找不到|未找到|不存在;
		zh-Hant 沒有類似的檔案|沒有此檔案|沒有這個檔案|沒有該檔案|沒有此類檔案|找不到|不存在`,
	NotImage: `ar التعرف على الصورة|ليس صورة; ca no reconeguda|no és una imatge; cs rozpoznán|není obraz; da genkendt|
		genkendes|ikke et diskbillede; de nicht erkannt|kein image; el αναγνωρίζεται|δεν είναι είδωλο; es no reconocid|
		no se reconoce|no es una imagen; fi ei tunnistet|ei ole levytiedosto; fr non reconnu|pas reconnu|
		n'est pas une image; he מזוהה|לא זוהתה|אינו דמות; hi पहचानी|डिस्क इमेज नहीं; hr prepoznat|nije slika;
		hu ismerhető fel|felismerhető|nem egy lemezkép; id tidak dikenal|bukan image; it non riconosciut|
		non è un'immagine; ja イメージ*認識|認識*イメージ|イメージではありません; ko 이미지*인식|인식*이미지|이미지가 아; ms tidak dikenal|bukan imej;
		nb gjenkjen|ikke en diskfil; nl niet herkend|geen schijfkopie; pl nierozpoznan|nie rozpoznan|nie jest obrazem;
		pt não reconhecid|não é uma imagem; ro nerecunoscut|nu este recunoscut|nu este o imagine; ru распозна|
		не является образом; sk rozpoznan|nie je obraz; sv inte igen|inte en skivavbild; th ไม่รู้จักภาพ|ไม่ใช่ภาพ;
		tr tanınamadı|tanınmadı|tanınmıyor|görüntüsü değil; uk розпізна|не є образом; vi không nhận ra|không nhận dạng|
		không phải là ảnh; zh-Hans 无法识别|不能识别|未能识别|未识别|不是磁盘映像; zh-Hant 無法辨識|無法識別|未能辨識|不是磁碟映像`,
	NotPermitted: `ar غير مسموح; ca no és permesa|no permesa|no està permesa; cs není povolen|nepovolen|není dovolen;
		da tillades ikke|ikke tilladt; de nicht zugelassen|nicht erlaubt|nicht gestattet|nicht zulässig;
		el δεν επιτρέπεται; es no permitid|no está permitid|no autorizada; fi ei sallittu|ei ole sallittu|ei sallita;
		fr non permise|non autorisée|pas permise|pas autorisée; he הפעולה אסורה|אינה מורשית|אינה מותרת|לא מורשית;
		hi अनुमति नहीं है; hr nije dozvoljen|nije dopušten; hu nem engedélyezett; id tidak diizinkan|
		tidak diperbolehkan; it non consentit|non permess|non autorizzat; ja 許可されていません|許可されません|許可されてい; ko 허용되지|허가되지;
		ms tidak dibenarkan; nb ikke tillatt|ikke lov; nl niet toegestaan; pl nie jest dozwolon|niedozwolon|
		niedopuszczaln; pt não permitid|não é permitid|não autorizad; ro nepermis|nu este permis; ru не разрешен|
		не позволен|не допускается|не дозволен; sk nepovolen|nie je povolen; sv inte tillåt|ej tillåt; th ไม่อนุญาต|
		ไม่ได้รับอนุญาต; tr izin verilmiyor|izin verilmez|izinli değil; uk не дозволен; vi không được phép;
		zh-Hans 不被允许|不允许|未获允许|未经允许; zh-Hant 未經允許|不允許|不被允許`,
	OpenFiles: `ar الملفات المفتوحة; ca arxius oberts; cs otevřených souborů; da åbne arkiver|åbne filer;
		de offene dateien|geöffnete dateien; el ανοιχτά αρχεία|ανοικτά αρχεία; es archivos abiertos;
		fi avoimia tiedostoja; fr fichiers ouverts; he קבצים פתוחים; hi खुली हुई फ़ाइलें; hr otvorenih datoteka;
		hu nyitott fájl; id file yang dibuka|file terbuka|file yang terbuka; it file aperti; ja 開いているファイル|ファイルを開きすぎ;
		ko 파일이 열려|열린 파일; ms fail terbuka; nb åpne filer; nl open bestanden|geopende bestanden; pl otwartych plików;
		pt arquivos abertos|ficheiros abertos; ro fișiere deschise; ru открыто*файлов|открытых файлов;
		sk otvorených súborov; sv öppna filer; th ไฟล์ที่เปิด|ไฟล์เปิด; tr açık dosya; uk відкритих файлів|
		забагато файлів; vi tệp đang mở; zh-Hans 打开的文件; zh-Hant 開啟的檔案`,
	Permission: `ar رفض الإذن|تفاعل المستخدم; ca permís denegat|interacció de l'usuari; cs oprávnění zamítnuto|
		přístup odepřen|přístup odmítnut|požadována autorizace; da adgang nægtet|tilladelse nægtet|brugerinteraktion;
		de zugriff verweigert|berechtigung|zugriffsrecht|benutzerinteraktion; el άρνηση δικαιώματος|άρνηση πρόσβασης|
		αλληλεπίδραση χρήστη; es permiso denegado|acceso denegado|permisos insuf|interacción del usuario;
		fi ei oikeutta|ei oikeuksia|käyttö estetty|pääsy estetty|pääsy evätty|käyttäjän toimia;
		fr autorisation refusée|permission refusée|permission non accordée|accès refusé|intervention de l'utilisateur;
		he אין הרשאה|הרשאה נדחתה|גישה נדחתה|פעולת משתמש; hi अनुमति नहीं दी|अनुमति अस्वी|यूज़र इंटर;
		hr odbijeno dopuštenje|dopuštenje odbijeno|dozvola odbijena|pristup odbijen|djelovanje korisnika;
		hu engedély megtagadva|hozzáférés megtagadva|felhasználói interakció; id izin ditolak|akses ditolak|
		interaksi pengguna; it permesso negato|accesso negato|autorizzazione negata|interazione utente; ja アクセス権|
		アクセスが拒否|アクセスは拒否|許可がありません|権限がありません|ユーザの操作が必要; ko 권한 거부|권한이 거부|권한이 없|접근 거부|접근이 거부|액세스가 거부|사용자 상호 작용;
		ms keizinan ditolak|kebenaran ditolak|interaksi pengguna; nb ingen tilgang|tilgang nekt|ikke tilgang|
		brukerinteraksjon; nl bevoegdhe|toegang geweigerd|geen toegang|toestemming geweigerd|gebruikersinteractie;
		pl odmowa uprawnień|odmowa dostępu|odmowa upr|brak dostępu|brak uprawnień|odmówiono|reakcji użytkownika;
		pt permissão negada|permissão recusada|acesso negado|interação do u; ro permisiune respinsă|
		permisiune refuzată|acces refuzat|acces interzis|interacțiune utilizator; ru доступ запрещ|отказано в доступе|
		доступе отказано|нет доступа|недостаточно прав|нет прав|взаимодействие с пользователем; sk prístup zamietnut|
		prístup odmietnut|oprávnenie zamietnut|užívateľská interakcia; sv behörighet gavs|behörighet saknas|
		behörighet nekad|åtkomst nekad|åtkomst ej|användaråtgärd; th ปฏิเสธ|ต้องการการอนุญาต; tr izin verilmedi|
		izin reddedildi|erişim engellendi|erişim reddedildi|kullanıcı etkileşimi; uk доступ заборон|відмовлено|
		взаємодія з користувачем; vi giấy phép bị từ chối|quyền bị từ chối|truy cập bị từ chối|từ chối quyền|
		từ chối truy cập|tương tác người dùng; zh-Hans 权限被拒|权限不|拒绝访问|没有权限|没有访问|访问被拒|许可被拒|用户互动; zh-Hant 權限被拒|權限不足|取用權遭拒|
		取用權限|拒絕取用|拒絕存取|存取被拒|沒有權限|互動操作`,
	Quota: `ar الحصة; cs kvóta; da kvote; de kontingent; el ορίων δίσκου|όριο δίσκου; es cuota; fi levyvaraus|kiintiö;
		he הקצאת מקום|מכסת; hi की क्षमता; hr kvota; hu kvóta; id kuota; ja 割り当て容量|クォータ; ko 디스크 할당|할당량; ms kuota;
		nb kvote; pl przydziału; pt cota de; ro cotă|cota; ru квот; sk kvót; sv skivutrymmet|kvot; th โควต้า|โควตา;
		tr kotası; uk квот; vi hạn mức; zh-Hans 配额; zh-Hant 光碟數目|容量用罄|配額`,
	ReadOnly: `ar للقراءة فقط; ca només de lectura; cs pouze ke čtení|pouze pro čtení|jen pro čtení;
		da skrivebeskyttet; de schreibgeschützt|nur lesbar|nur-lese; el μόνο για ανάγνωση; es solo lectura|
		sólo lectura; fi kirjoitussuoj|vain luku; fr lecture seule; he לקריאה בלבד; hi रीड ओनली|केवल पढ़ने;
		hr samo za čitanje; hu csak olvasható; id hanya baca|hanya-baca; it sola lettura; ja 読み出し専用|読み取り専用|読み込み専用;
		ko 읽기 전용; ms baca sahaja; nb kun-les|skrivebeskyttet|skrivebeskytta; nl alleen-lezen|alleen lezen;
		pl tylko do odczytu; pt somente leitura|só de leitura|apenas leitura|somente para leitura; ro doar citire|
		doar în citire|numai citire; ru только*чтени; sk len na čítanie; sv skrivskydd|endast läs; th อ่านอย่างเดียว;
		tr salt okunur; uk не дозволяє запис|для читання; vi chỉ đọc; zh-Hans 只读; zh-Hant 唯讀`,
	TimedOut: `ar مهلة; ca temps d'espera; cs časový limit; da timeout; de zeitlimit|zeitüberschreitung;
		el χρονικό όριο|χρονικού ορίου; es tiempo*agotado|agotó el tiempo|tiempo de espera; fi aikakatkai; fr délai;
		he תם זמנה|תם הזמן|פסק זמן; hi टाइमआउट|समय समाप्त; hr isteklo; hu időkorlát|időtúllépés; id kehabisan waktu|
		waktu habis|waktu tunggu; it tempo scaduto|scaduto il tempo; ja タイムアウト; ko 시간 초과|시간이 초과; ms tamat masa;
		nb tidsavbru; nl time-out; pl limitu czasu|upłynął; pt tempo limite|tempo disponível|tempo esgotado|
		tempo de espera|expirou; ro expirat; ru ресурс времени|время ожидания|времени ожидания|тайм-аут|таймаут|
		истекло; sk vypršal; sv tidsgräns; th หมดเวลา; tr zaman aşım; uk час на операцію|час очікування|
		часу очікування|тайм-аут; vi hết thời gian|thời gian chờ|quá thời gian; zh-Hans 超时; zh-Hant 逾時|超時`,
	TooLarge: `ar كبير جد|كبير للغاية|كبيرة جد|طويلة جد; ca massa gran; cs příliš velk; da for stor; de zu groß;
		el πολύ μεγάλ; es demasiado grande; fi liian suuri; fr trop volumineu|trop grand; he גדול מדי|גדולים מדי|
		גדולה מדי; hi बहुत बड़; hr prevelik; hu túl nagy; id terlalu besar; it troppo grande|risultato troppo|
		valore troppo|dispositivo troppo; ja 大きすぎ; ko 너무 큽|너무 커|너무 큼; ms terlalu besar; nb for stor; nl te groot|
		resultaat te lang; pl zbyt duż|za duż; pt grande demais|demasiado grande|muito grande; ro prea mare;
		ru слишком больш; sk príliš veľk|hodnota príliš; sv för stor; th ใหญ่เกินไป|สูงเกินไป; tr çok büyük|
		kadar büyük; uk завелик|занадто велик|результат задовгий; vi quá lớn; zh-Hans 太大|过大; zh-Hant 太大|過大`,
	Unsupported: `ar غير مدعوم|لا يدعم|تنفيذ الوظيفة; ca no és compatible|no compatible|no implementada; cs nepodporov|
		není podporov|podporován|neimplement; da understøttes ikke|ikke implement; de nicht unterstützt|
		nicht implementiert; el δεν υποστηρίζ|δεν έχει υλοποιηθεί; es no admitid|no compatible|no es compatible|
		no implementada|no se admite|no soportad; fi ei tue|ei toteutettu; fr non géré|non pris|pas pris|non présente|
		non implémentée; he נתמכת|נתמך|אינה מיושמת; hi समर्थित नहीं|लागू नहीं किया; hr ne podržava|nije podržan|
		nekorištena funkcija; hu nincs támogatva|nem támogat|nincs kifejlesztve; id tidak didukung|tidak diterapkan;
		it non supportat|non è supportat|non implementat; ja 対応していません|サポートされていません|サポートしていません|実装されていません; ko 지원되지|지원하지|
		구현되지 않았습니다; ms tidak disokong|tidak dilaksanakan; nb støttes ikke|ikke implement; nl niet ondersteund|
		niet geïmplementeerd; pl nie jest obsługiwan|nieobsługiwan|niezaimplement; pt incompatível|não suportad|
		não é suportad|não é compatível|não compatível|não implementad; ro neacceptat|nu este accept|
		nu este compatibil|nu este implement; ru не поддерживается|неприменимая функция|не реализован; sk nepodporovan|
		nie je podporovan|nebola uskutočnená; sv stöds inte|stöds ej|inte införd; th ไม่รองรับ|ไม่ได้ทำตามฟังก์ชั่น;
		tr desteklenmiyor|desteklemiyor|gerçekleştirilmemiş; uk не підтриму|не реалізовано; vi hỗ trợ|
		không được triển khai; zh-Hans 不支持|不被*支持|未实现; zh-Hant 不支援|未能執行|不能執行`,
}
